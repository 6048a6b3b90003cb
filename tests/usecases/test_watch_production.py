"""After every production run: what is judged, kept, done to the flag and told."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.flag_change import FlagChange
from compilegate.domain.judging.judge import judge
from compilegate.domain.production.next_arm import FlagReading
from compilegate.usecases.change_flag import change_flag, latest_flag
from compilegate.usecases.production.staleness import before_the_run
from compilegate.usecases.production.watch_production import watch_production
from compilegate.usecases.trial import Trial, load_spec
from tests import fakes
from tests.domain.evidence_builder import CENTRE, FINGERPRINT
from tests.domain.production.run_builder import BEGIN
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    promote,
    put_other_spec,
    record,
    register,
)
from tests.usecases.trial_builder import FLAG, SPEC, TRIAL


def night(services: Any, number: int, arm: str = "compile", **changed: Any) -> dict[str, Any]:
    """A run, recorded and watched."""
    run = record(services, number, arm, **changed)
    return watch_production({"workload": WORKLOAD, "run": run.run}, services=services)


def follow(services: Any, nights: range, **candidates: Any) -> dict[str, Any]:
    """Every night the run that is asked for; ``candidates`` says what is wrong with theirs."""
    answer: dict[str, Any] = {}
    for number in nights:
        watches = [e for e in entries(services) if e["kind"] == "watch"]
        step = max(watches, key=lambda e: e["at"])["next"] if watches else None
        wanted = (step or {"runs": [{"arm": "compile", "confirm": False}]})["runs"][0]
        wrong = candidates if wanted["arm"] == "compile" else {}
        answer = night(services, number, wanted["arm"], confirm=wanted["confirm"], **wrong)
        if not flag_of(services).enabled:
            break
    return answer


def flag_of(services: Any) -> Flag:
    return parse_flag(services.flags.read(FLAG))


def entries(services: Any) -> list[Any]:
    return list(services.ledger.entries(WORKLOAD))


def flag_entries(services: Any) -> list[Any]:
    return list(services.ledger.entries(WORKLOAD, "flag#"))


def snapshot(services: Any) -> tuple[Any, ...]:
    return (dict(services.ledger.items), dict(services.flags.values), dict(services.store.objects))


def test_a_clean_run_is_judged_kept_and_told_to_nobody(services: Any) -> None:
    promote(services)
    answer = night(services, 1)
    (entry,) = [e for e in entries(services) if e["kind"] == "watch"]

    assert {"verdict": "continue", "decision_key": entry["decision_key"], "flag_changed": False,
            "tell": False} == answer  # fmt: skip
    assert [{"arm": "compile", "confirm": False}] == entry["next"]["runs"]
    assert "probation" == flag_of(services).state


def test_every_look_can_be_replayed_from_what_was_kept(services: Any) -> None:
    promote(services)
    key = night(services, 1)["decision_key"]
    kept = json.loads(services.store.get(key))
    place = f"decisions/{WORKLOAD}/{TRIAL}/probation/{kept['decision_id']}"
    evidence = json.loads(services.store.get(f"{place}-evidence.json"))
    again = judge(evidence).to_dict(FLAG)

    assert f"{place}.json" == key
    assert {**again, "trial": TRIAL} == kept


def test_twelve_clean_nights_make_it_permanent(services: Any) -> None:
    promote(services)
    answer = follow(services, range(1, 13))
    final = [e for e in entries(services) if e["kind"] == "probation"]

    assert ("permanent", True, True) == (answer["verdict"], answer["flag_changed"], answer["tell"])
    assert ("permanent", True) == (flag_of(services).state, flag_of(services).enabled)
    assert ["permanent"] == [e["verdict"] for e in final]
    assert flag_of(services).decision_id == final[0]["decision_id"]


def test_a_regression_alarms_is_checked_in_turns_and_turned_off(services: Any) -> None:
    promote(services)
    answer = follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    looks = [e for e in entries(services) if e["kind"] == "watch"]
    last = flag_entries(services)[-1]

    assert ("revert", True) == (answer["verdict"], answer["flag_changed"])
    assert (False, "reverted", "compile") == (
        flag_of(services).enabled, flag_of(services).state, flag_of(services).candidate,
    )  # fmt: skip
    assert ["alarm", "revert"] == [e["tell"] for e in looks if e["tell"]]
    assert ("train", "revert", TRIAL) == (last["by"], last["action"], last["trial"])
    assert last["evidence_key"] in services.store.objects


def test_a_revert_tells_the_numbers_and_where_the_chart_is(services: Any) -> None:
    promote(services)
    answer = follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    body = json.loads(json.loads(answer["notification"]["message"])["default"])

    assert ("revert", "revert", False) == (body["kind"], body["verdict"], body["flag"]["enabled"])
    assert re.search(r"worse by 0\.04", answer["message"])
    assert body["report"] in answer["message"]
    assert "No trial is begun for 14 days" in answer["message"]
    page = services.store.get(body["report"].removeprefix("s3://data/")).decode()
    assert page.startswith("<!DOCTYPE html>")


def test_a_repeated_look_changes_nothing_and_answers_the_same(services: Any) -> None:
    promote(services)
    follow(services, range(1, 30), metric=CENTRE - TWO_MARGINS)
    run = max(e["run"] for e in entries(services) if e["kind"] == "watch")
    before = snapshot(services)
    event = {"workload": WORKLOAD, "run": run}
    first = watch_production(event, services=services)

    assert first == watch_production(event, services=services)
    assert ("revert", True) == (first["verdict"], first["tell"])
    assert before == snapshot(services)


def test_a_look_that_died_before_the_flag_changed_is_finished_by_the_next_try(
    services: Any,
) -> None:
    promote(services)
    kept = services.flags.write
    record(services, 1, finished=False, metric=None)
    run = record(services, 2, finished=False, metric=None).run

    def dies(name: str, value: str) -> None:
        raise ConnectionError("gone")

    services.flags.write = dies
    with pytest.raises(ConnectionError):
        watch_production({"workload": WORKLOAD, "run": run}, services=services)
    services.flags.write = kept
    answer = watch_production({"workload": WORKLOAD, "run": run}, services=services)

    assert ("revert", "reverted") == (answer["verdict"], flag_of(services).state)
    assert 2 == len(flag_entries(services))


def writes(services: Any, dies_at: int) -> list[str]:
    """Everything that is written from now on, by name; the process dies before that one."""
    made: list[str] = []

    def watched(what: str, write: Any) -> Any:
        def call(*args: Any) -> Any:
            if len(made) == dies_at:
                raise SystemExit(what)
            made.append(what)
            return write(*args)

        return call

    services.store.put = watched("store", services.store.put)
    services.ledger.put_once = watched("ledger", services.ledger.put_once)
    services.flags.write = watched("flag", services.flags.write)
    return made


def two_crashes(dies_at: int) -> tuple[Any, list[str]]:
    """A look that reverts, which dies once and is tried again."""
    services = fakes.services("prod")
    promote(services)
    event = {"workload": WORKLOAD}
    for number in (1, 2):
        event["run"] = record(services, number, finished=False, metric=None).run
    real = services.store.put, services.ledger.put_once, services.flags.write
    made = writes(services, dies_at)
    try:
        watch_production(event, services=services)
    except SystemExit:
        services.store.put, services.ledger.put_once, services.flags.write = real
        watch_production(event, services=services)
    return services, made


def test_a_look_that_dies_before_any_of_its_writes_is_finished_by_the_next_try() -> None:
    whole, made = two_crashes(dies_at=1000)

    assert {"store", "ledger", "flag"} == set(made)
    for boundary in range(len(made)):
        again, _ = two_crashes(dies_at=boundary)
        assert snapshot(whole) == snapshot(again), f"before write {boundary}: {made[boundary]}"


def test_two_looks_at_once_make_one_change(services: Any) -> None:
    promote(services)
    crashes = [record(services, n, finished=False, metric=None).run for n in (1, 2)]
    for run in crashes:
        # Each saw the ledger as it was before the other had changed the flag.
        look_alone(services, run)

    assert ["enable", "revert"] == [e["action"] for e in flag_entries(services)]


def look_alone(services: Any, run: str) -> None:
    """A look that reads a ledger without what other looks have written."""
    ledger, real = services.ledger, services.ledger.entries
    first: list[bool] = []

    def stale(workload: str, prefix: str = "") -> Any:
        found = real(workload, prefix)
        if prefix or first:
            return found
        first.append(True)
        return [e for e in found if e["kind"] not in ("watch", "probation") and not late(e)]

    def late(entry: Any) -> bool:
        return bool(entry["kind"] == "flag" and entry["by"] == "train")

    ledger.entries = stale
    try:
        watch_production({"workload": WORKLOAD, "run": run}, services=services)
    finally:
        ledger.entries = real


def test_a_look_counts_as_after_the_runs_it_has_seen_though_the_clock_knows_only_seconds(
    services: Any,
) -> None:
    promote(services)
    run = record(services, 1, ended_at=services.clock.seconds + 90_000.7)
    services.clock.seconds = int(run.ended_at)
    watch_production({"workload": WORKLOAD, "run": run.run}, services=services)
    (entry,) = [e for e in entries(services) if e["kind"] == "watch"]

    assert entry["at"] >= run.ended_at


def test_late_events_come_to_the_same_decision(services: Any) -> None:
    promote(services)
    runs = [record(services, n).run for n in (3, 1, 2)]
    keys = {
        watch_production({"workload": WORKLOAD, "run": run}, services=services)["decision_key"]
        for run in runs
    }

    assert 1 == len(keys)


@pytest.mark.parametrize("kind", ["nothing promoted", "turned off by hand", "set by hand"])
def test_what_no_trial_has_turned_on_is_not_watched(services: Any, kind: str) -> None:
    if kind != "nothing promoted":
        promote(services)
        own = Flag(kind == "set by hand", "probation", "mine", {"precision": "fp8"})
        say(services, own)
    answer = night(services, 1)

    assert (None, False, False) == (answer["verdict"], answer["flag_changed"], answer["tell"])
    assert not [e for e in entries(services) if e["kind"] == "watch"]


def say(services: Any, flag: Flag, at: int = BEGIN + 100) -> None:
    """A person changes the flag."""
    services.clock.seconds = max(services.clock.seconds, at)
    said = FlagChange(
        change_id=f"human#{at}", by="human:ann", action="set", flag=flag, reason="I want it",
        decided_at=at, details={"trial": TRIAL} if flag.candidate == "compile" else {},
    )  # fmt: skip
    change_flag(WORKLOAD, said, services=services)


def test_a_regression_sets_a_persons_word_aside_and_says_so(services: Any) -> None:
    on = promote(services)
    say(services, on)
    answer = [night(services, n, finished=False, metric=None) for n in (1, 2)][-1]
    last = flag_entries(services)[-1]

    assert ("reverted", "human:ann") == (flag_of(services).state, last["overrode"]["by"])
    assert "This sets aside what human:ann said" in answer["message"]


def test_what_a_person_turned_on_is_permanent_when_its_probation_held(services: Any) -> None:
    on = promote(services, change(SOUND, policy__probation_runs=2))
    say(services, on)
    follow(services, range(1, 3))

    assert "permanent" == flag_of(services).state


def test_a_run_trains_what_a_person_turned_on_whatever_it_was_measured_on(services: Any) -> None:
    say(services, promote(services))
    key = put_other_spec(services, SOUND, "workloads/bert-docs/other.tgz")
    read = reading(services)

    assert read == before_the_run(read, WORKLOAD, spec(services, key), services)


def test_a_change_of_what_a_person_turned_on_is_told_once_and_left_to_them(
    services: Any,
) -> None:
    on = promote(services)
    say(services, on)
    other = {**FINGERPRINT, "code_sha256": "another"}
    first, second = (night(services, n, fingerprint=other) for n in (1, 2))

    assert (True, "probation") == (flag_of(services).enabled, flag_of(services).state)
    assert "left as it is: what human:ann said" in first["message"]
    assert (True, False) == (first["tell"], second["tell"])


@pytest.mark.parametrize(
    ("policy", "enabled", "words"),
    [("fall_back", False, "The flag is off"), ("keep", True, "The flag is on, state stale")],
)
def test_another_code_is_stale_and_a_new_trial_is_offered_with_its_price(
    services: Any, policy: str, enabled: bool, words: str
) -> None:
    promote(services, change(SOUND, policy__on_stale=policy))
    answer = night(services, 1, fingerprint={**FINGERPRINT, "code_sha256": "another"})
    body = json.loads(json.loads(answer["notification"]["message"])["default"])

    assert ("stale", enabled) == (flag_of(services).state, flag_of(services).enabled)
    assert "code that the job recorded: was c, is another" in answer["message"]
    assert words in answer["message"]
    assert re.search(r"A new trial would cost about \$[\d,.]+ \(\$", answer["message"])
    assert ("stale", "compilegate run workloads/bert-docs.yaml") == (body["kind"], body["act"])


def test_another_registered_job_is_stale_even_if_the_run_was_the_old_one(services: Any) -> None:
    promote(services)
    larger = change(SOUND, training__batch_size=SOUND.training.batch_size * 2)
    register(services, put_other_spec(services, larger, "workloads/bert-docs/s.tgz"))
    answer = night(services, 1)

    assert ("stale", False) == (flag_of(services).state, flag_of(services).enabled)
    assert "batch size per device: was" in answer["message"]


def test_a_teams_job_of_an_unregistered_workload_is_known_by_its_record(services: Any) -> None:
    promote(services)
    del services.store.objects[naming.registration_key(WORKLOAD)]
    fine = night(services, 1, launched_by="team")
    night(services, 2, launched_by="team", fingerprint={**FINGERPRINT, "torch": "2.14.0"})

    assert "continue" == fine["verdict"]
    assert "stale" == flag_of(services).state


def test_a_stale_flag_that_stayed_on_is_in_probation_again_when_all_is_as_it_was(
    services: Any,
) -> None:
    promote(services, change(SOUND, policy__on_stale="keep"))
    night(services, 1, fingerprint={**FINGERPRINT, "code_sha256": "another"})
    answer = night(services, 2)

    assert (True, "probation") == (flag_of(services).enabled, flag_of(services).state)
    assert "production trains again what was proven" in answer["message"]


def test_a_stale_flag_that_stayed_on_is_still_reverted_and_never_permanent(services: Any) -> None:
    promote(services, change(SOUND, policy__on_stale="keep", policy__probation_runs=2))
    other = {"fingerprint": {**FINGERPRINT, "code_sha256": "another"}}
    night(services, 1, **other)
    night(services, 2, **other)
    kept = flag_of(services).state
    follow(services, range(3, 20), metric=CENTRE - TWO_MARGINS, **other)

    assert ("stale", "reverted") == (kept, flag_of(services).state)


def test_a_change_that_most_runs_do_without_is_told_and_at_the_second_falls_back(
    services: Any,
) -> None:
    promote(services)
    first = night(services, 1, applied=False)
    kept = flag_of(services)
    second = night(services, 2, applied=False)

    assert ("invalid", True, "probation") == (first["verdict"], kept.enabled, kept.state)
    assert "See why the jobs train without the change" in first["message"]
    assert ("invalid", False, "stale") == (
        second["verdict"], flag_of(services).enabled, flag_of(services).state,
    )  # fmt: skip


def test_a_baseline_that_keeps_failing_is_told_once_and_leaves_the_flag(services: Any) -> None:
    promote(services)
    kept = services.store.objects[naming.record_key(WORKLOAD, TRIAL, "evidence")]
    found = json.loads(kept)
    found["quality"]["history"] = []
    for arm in found["arms"]:
        arm["runs"] = [run for run in arm["runs"] if run["stage"] == "speed"]
    services.store.put(naming.record_key(WORKLOAD, TRIAL, "evidence"), json.dumps(found).encode())
    answers = [
        night(services, n, "baseline", finished=False, metric=None, wall_seconds=None)
        for n in range(1, 5)
    ]

    assert [False, False, True, False] == [answer["tell"] for answer in answers]
    assert "Repair the baseline first" in answers[2]["message"]
    assert "probation" == flag_of(services).state


def permanent(services: Any) -> None:
    promote(services)
    follow(services, range(1, 13))
    assert "permanent" == flag_of(services).state


def test_after_permanence_nothing_is_judged_until_runs_go_wrong_in_a_row(services: Any) -> None:
    permanent(services)
    calm = night(services, 13, metric=CENTRE - TWO_MARGINS)
    once = night(services, 14, finished=False, metric=None)
    twice = night(services, 15, finished=False, metric=None)

    assert [None, None, "revert"] == [answer["verdict"] for answer in (calm, once, twice)]
    assert "reverted" == flag_of(services).state


def test_after_permanence_another_image_is_still_stale(services: Any) -> None:
    permanent(services)
    night(services, 13, fingerprint={**FINGERPRINT, "torch": "3.0"})

    assert ("stale", False) == (flag_of(services).state, flag_of(services).enabled)


def test_evidence_that_cannot_be_read_leaves_the_flag_and_is_told(services: Any) -> None:
    promote(services)
    answer = night(services, 1, metric="high")

    assert ("inconclusive", True, "probation") == (
        answer["verdict"], answer["tell"], flag_of(services).state,
    )  # fmt: skip
    assert "Repair what the job records" in answer["message"]


def test_without_the_trials_records_nothing_is_decided(services: Any) -> None:
    promote(services)
    del services.store.objects[naming.record_key(WORKLOAD, TRIAL, "evidence")]

    with pytest.raises(NotFoundError):
        night(services, 1)
    assert "probation" == flag_of(services).state


# Before a run


def reading(services: Any) -> FlagReading:
    return FlagReading(latest_flag(WORKLOAD, services)[0], services.flags.read(FLAG))


def spec(services: Any, key: str = SPEC) -> Any:
    return load_spec(services.store, Trial(WORKLOAD, "", key))


def test_a_run_of_what_was_proven_follows_the_flag(services: Any) -> None:
    promote(services)
    read = reading(services)

    assert read == before_the_run(read, WORKLOAD, spec(services), services)


def test_a_run_of_another_job_trains_the_baseline_and_the_flag_is_left_to_the_watch(
    services: Any,
) -> None:
    promote(services)
    key = put_other_spec(services, SOUND, "workloads/bert-docs/other.tgz")
    read = before_the_run(reading(services), WORKLOAD, spec(services, key), services)

    assert (False, "stale") == (read.flag.enabled, read.flag.state)
    assert "source bundle: was workloads/bert-docs/s.tgz" in (read.told or "")
    assert "probation" == flag_of(services).state


def test_a_team_that_keeps_what_is_stale_trains_it(services: Any) -> None:
    promote(services, change(SOUND, policy__on_stale="keep"))
    kept = change(SOUND, policy__on_stale="keep")
    key = put_other_spec(services, kept, "workloads/bert-docs/other.tgz")
    read = reading(services)

    assert read == before_the_run(read, WORKLOAD, spec(services, key), services)


def test_a_comparison_that_fails_is_no_reason_not_to_train(services: Any) -> None:
    promote(services)
    del services.store.objects[naming.record_key(WORKLOAD, TRIAL, "plan")]
    read = reading(services)

    assert read == before_the_run(read, WORKLOAD, spec(services), services)
