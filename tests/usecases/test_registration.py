"""What production trains of a workload, and how it gets there."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from compilegate.domain import codec, naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.usecases import registration
from compilegate.usecases.records import Trial, load_registration, load_spec, spec_at
from compilegate.usecases.registration import RegistrationOutcome, submit
from tests.domain.workload_builder import SOUND
from tests.fakes import MemorySchedules, MemoryStore
from tests.usecases.production_ledger import OFF, ON, flag_entry
from tests.usecases.registration_builder import KEY, NIGHTLY, WEEKLY, Production, asked, scheduled

DOCUMENT = {
    "schema": 1,
    "workload": "bert-docs",
    "spec_key": "workloads/bert-docs/specs/0123456789ab.json",
    "source_digest": "ba9876543210",
    "schedule": "cron(0 3 * * ? *)",
    "timezone": "Europe/Berlin",
    "active": True,
    "owner": "nlp",
    "origin": "workloads/bert-docs.yaml",
    "target": "arn:machine as arn:role",
    "revision": 3,
    "complete": True,
}


def stored(document: object) -> MemoryStore:
    store = MemoryStore()
    store.put(KEY, json.dumps(document).encode())
    return store


@pytest.mark.parametrize(
    "broken", [[], "text", {}, {**DOCUMENT, "schema": 2}, {**DOCUMENT, "revision": "three"}]
)
def test_a_broken_registration_is_bad_input_that_names_the_object(broken: object) -> None:
    with pytest.raises(InvalidInputError, match=r"s3://data/workloads/bert-docs/registration"):
        load_registration(stored(broken), "bert-docs")


def test_a_new_workload_is_uploaded_and_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    production = Production()
    monkeypatch.setattr(registration, "find_json", None)  # there is none before it to read
    result = production.register()
    registered = production.registered()
    spec = spec_at(production.store, registered.spec_key)
    data = spec.workload.training.inputs["train"].removeprefix("s3://data/")

    assert ("new", registered, 3) == (result.what, result.registration, result.uploaded)
    assert naming.source_key("bert-docs", "digest-636f6465") == spec.source_key
    digest = hashlib.sha256(production.store.get(spec.key)).hexdigest()[:12]
    assert naming.spec_key("bert-docs", digest) == spec.key
    assert b"1,2\n" == production.store.get(f"{data}rows.csv")
    assert b"code" == production.store.get(spec.source_key)
    assert {"workload": spec.workload.to_dict(), "source_key": spec.source_key} == json.loads(
        production.store.get(spec.key)
    )


def test_what_a_trial_starts_from_is_uploaded_with_its_digest_and_its_file() -> None:
    store = MemoryStore()
    package = dataclasses.replace(asked().package, code_digest="c", origin="a.yaml")
    trial = submit(package, trial="t1", store=store)
    spec = load_spec(store, trial)

    assert (Trial("bert-docs", "t1", spec.key), 3) == (trial, len(store.objects))
    assert ("c", "a.yaml") == (spec.code_digest, spec.origin)


BERLIN = dataclasses.replace(SOUND.schedule, cron=NIGHTLY, timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("changes", "source", "named"),
    [
        ({"schedule": BERLIN}, b"code", {"schedule.timezone": ("UTC", "Europe/Berlin")}),
        ({"cron": WEEKLY}, b"code", {"schedule.cron": (NIGHTLY, WEEKLY)}),
        ({"cron": None}, b"code", {"schedule.cron": (NIGHTLY, None)}),
        ({"training": dataclasses.replace(SOUND.training, learning_rate=3e-5)}, b"more",
         {"training.learning_rate": (5e-5, 3e-5),
          "source": ("digest-636f6465", "digest-6d6f7265")}),
    ],
)  # fmt: skip
def test_what_changed_is_named_field_by_field_and_a_dry_run_says_the_same(
    changes: dict[str, Any], source: bytes, named: dict[str, Any]
) -> None:
    production, wanted = Production(), asked(scheduled(**changes), source=source)
    production.register()
    objects = dict(production.store.objects)

    planned = production.register(wanted, dry_run=True)
    assert objects == production.store.objects
    assert {"bert-docs": NIGHTLY} == production.schedules.expressions
    result = production.register(wanted)

    shown = {change.field: (change.before, change.after) for change in result.changes}
    assert ("updated", named) == (result.what, shown)
    assert (planned.what, planned.changes, 0) == (result.what, result.changes, planned.uploaded)
    schedule = wanted.package.workload.schedule
    expressions = {"bert-docs": schedule.cron} if schedule.cron else {}
    assert expressions == production.schedules.expressions
    assert {"bert-docs": schedule.timezone} == production.schedules.zones
    assert [("registered", 1), ("registered", 2)] == production.history()


def test_another_deployment_has_every_schedule_set_again() -> None:
    production = Production()
    production.register()
    production.schedules = MemorySchedules(target="another machine")

    assert ["deployment"] == [change.field for change in production.register().changes]
    assert {"bert-docs": NIGHTLY} == production.schedules.expressions


def test_what_was_deleted_by_hand_comes_back_when_asked_again() -> None:
    production = Production()
    production.register()
    production.schedules.expressions.clear()

    assert "unchanged" == production.register().what
    assert "repaired" == production.register(repair=True).what
    assert {"bert-docs": NIGHTLY} == production.schedules.expressions
    assert [("registered", 1)] == production.history()

    production.retire()
    production.schedules.expressions["bert-docs"] = WEEKLY
    assert ["unchanged", "retired"] == [production.retire(repair=one).what for one in (False, True)]
    assert {} == production.schedules.expressions


@pytest.mark.parametrize("key", ["registration", "spec"])
def test_a_registration_or_spec_that_cannot_be_read_is_replaced(key: str) -> None:
    production = Production()
    production.register()
    production.store.put(KEY if key == "registration" else production.registered().spec_key, b"[]")

    wanted = asked(scheduled(WEEKLY))
    assert ("updated" if key == "spec" else "new") == production.register(wanted).what
    assert WEEKLY == production.registered().schedule


def test_what_must_be_there_is_looked_for_before_anything_is_uploaded() -> None:
    production = Production()

    def refuse(spec: Mapping[str, Any]) -> None:
        raise InvalidInputError("does not exist", field="training.inputs.train")

    with pytest.raises(InvalidInputError, match=r"training\.inputs\.train"):
        production.register(asked(verify=refuse))
    assert {} == production.store.objects


@pytest.mark.parametrize("flag", [ON, dataclasses.replace(ON, enabled=False)])
def test_retiring_ends_the_schedule_and_keeps_everything_else(flag: Flag) -> None:
    production = Production()
    production.register()
    production.services.flags.write("/compilegate/dev/workloads/bert-docs/compiler", "{}")
    flag_entry(production.services, "bert-docs", 1, 0, flag, OFF)
    kept = {key: body for key, body in production.store.objects.items() if key != KEY}

    result = production.retire()

    assert ("retired", False) == (result.what, production.registered().active)
    assert ("compile" if flag.enabled else None) == result.still_on
    assert {} == production.schedules.expressions
    kinds = [entry["kind"] for entry in production.services.ledger.raw.entries("bert-docs")]
    assert ["flag", "registered", "retired"] == kinds
    assert kept == {key: body for key, body in production.store.objects.items() if key != KEY}
    assert "{}" == production.services.flags.read("/compilegate/dev/workloads/bert-docs/compiler")


def test_another_owners_name_is_refused_and_nothing_touched() -> None:
    production = Production()
    production.register()
    before = dict(production.store.objects)

    with pytest.raises(InvalidInputError) as refused:
        production.register(asked(scheduled(owner="vision"), origin="jobs/bert.yaml"))

    message = str(refused.value)
    assert "registered by the owner nlp from workloads/bert-docs.yaml" in message
    assert "--take-over" in message
    assert before == production.store.objects


def test_a_new_name_that_another_owner_was_faster_to_register_is_refused() -> None:
    """Both saw that nobody had it; while this one uploads the other claims it."""
    production, other = Production(), asked(scheduled(owner="vision"), origin="jobs/bert.yaml")

    def meanwhile(_spec: Mapping[str, Any]) -> None:
        production.register(asked())

    with pytest.raises(InvalidInputError, match="registered by the owner nlp"):
        production.register(dataclasses.replace(other, verify=meanwhile))

    assert "nlp" == production.registered().owner


# Registering survives a crash at every write, and two who register at once.


class Crash(BaseException):
    """The process is gone."""


WRITES = (
    ("store", "put"),
    ("store", "put_stream"),
    ("ledger", "put_once"),
    ("schedules", "put"),
    ("schedules", "remove"),
)


def crash() -> None:
    raise Crash


def at_write(
    production: Production, number: int, happens: Callable[[], object], *, after: bool
) -> None:
    """At the write of that number this happens, just before or just after it takes effect."""
    count = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            is_it = count == number
            if is_it and not after:
                happens()
            answer = original(*arguments, **named)
            if is_it and after:
                happens()
            return answer

        return write

    ledger: Any = production.services.ledger
    owners: dict[str, Any] = {
        "store": production.store, "ledger": ledger.raw, "schedules": production.schedules,
    }  # fmt: skip
    for owner, name in WRITES:
        one = owners[owner]
        setattr(one, name, counted(getattr(one, name)))


def restarted(production: Production) -> Production:
    """The same stores as another process finds them."""
    repair = Production()
    repair.store.objects = production.store.objects
    ledger: Any = repair.services.ledger
    crashed: Any = production.services.ledger
    ledger.raw.items = crashed.raw.items
    repair.schedules.expressions = production.schedules.expressions
    return repair


# Action, and how many writes it makes: three uploads of a new workload, then ledger,
# registration, schedule, registration.
ACTIONS: dict[str, tuple[Callable[[Production], RegistrationOutcome], int]] = {
    "new": (lambda production: production.register(), 7),
    "update": (lambda production: production.register(asked(scheduled(WEEKLY))), 5),
    "unschedule": (lambda production: production.register(asked(scheduled(None))), 5),
    "retire": (lambda production: production.retire(), 4),
}
CRASHES = [
    (action, number, after)
    for action, (_, writes) in ACTIONS.items()
    for number in range(1, writes + 1)
    for after in (False, True)
]


def outcome(production: Production) -> tuple[Any, ...]:
    return (
        production.store.objects,
        production.schedules.expressions,
        production.history(),
    )


@pytest.mark.parametrize(("action", "number", "after"), CRASHES)
def test_running_it_again_after_a_crash_comes_to_the_same(
    action: str, number: int, after: bool
) -> None:
    act, _ = ACTIONS[action]
    undisturbed, crashed = Production(), Production()
    for production in (undisturbed, crashed):
        if action != "new":
            production.register()
    act(undisturbed)
    at_write(crashed, number, crash, after=after)
    with pytest.raises(Crash):
        act(crashed)
    repair = restarted(crashed)

    act(repair)

    assert outcome(undisturbed) == outcome(repair)


@pytest.mark.parametrize(("action", "writes"), [(name, n) for name, (_, n) in ACTIONS.items()])
def test_the_table_of_crashes_knows_every_write(action: str, writes: int) -> None:
    production = Production()
    if action != "new":
        production.register()
    at_write(production, writes + 1, crash, after=False)

    ACTIONS[action][0](production)  # makes no more writes than the table crashes at


@pytest.mark.parametrize(
    ("number", "after"), [(number, after) for number in range(1, 6) for after in (False, True)]
)
def test_two_that_register_at_once_leave_ledger_registration_and_schedule_agreed(
    number: int, *, after: bool
) -> None:
    production = Production()
    production.register()
    other = asked(scheduled(WEEKLY))
    at_write(production, number, lambda: production.register(other), after=after)
    production.register(asked(scheduled(None)))

    entries = production.services.ledger.raw.entries("bert-docs")
    # This one's own record is its second write, after the upload.
    last = [WEEKLY, None] if number + after < 3 else [None, WEEKLY]
    assert [NIGHTLY, *last] == [entry["registration"]["schedule"] for entry in entries]
    assert entries[-1]["registration"] == codec.write(production.registered())
    assert production.schedules.expressions == ({"bert-docs": WEEKLY} if last[1] else {})
