"""A change of the flag: who may overrule whom, and what the ledger keeps of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import MAX_BYTES, OFF, Flag
from compilegate.domain.flag_change import Override
from compilegate.domain.records.flags import Author
from compilegate.domain.records.trials import TrialDecided, TrialStarted
from compilegate.domain.utc import iso
from compilegate.usecases.flag.change_flag import (
    Changed,
    change_flag,
    find_candidate,
    latest_flag,
    repair_flag,
    repair_if_possible,
    revert_by_hand,
    set_by_hand,
)
from compilegate.usecases.planning import plan_trial
from tests.usecases.flag_changes import (
    FLAG,
    OVERRIDES,
    WORKLOAD,
    assert_sound,
    flag_change,
    history,
)
from tests.usecases.trial_builder import EVENT, TRIAL


def make(services: Any, kind: str, **given: Any) -> Any:
    services.clock.seconds += 60
    return change_flag(WORKLOAD, flag_change(kind, **given), services=services)


def now(services: Any) -> int:
    return int(services.clock.now())


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ([], "disable"),
        (["enable", "revert"], "disable"),
        (["enable"], "enable"),
        (["enable", "revert"], "revert"),
        (["enable", "permanent"], "permanent"),
        (["enable", "stale"], "stale"),
    ],
)
def test_a_flag_that_is_already_so_is_not_changed(
    before: list[str], kind: str, services: Any
) -> None:
    for earlier in before:
        make(services, earlier)
    stood = latest_flag(WORKLOAD, services)
    services.flags.values.clear()  # lost, and written again

    made = make(services, kind, change_id="again")

    assert (False, *stood) == (made.changed, made.flag, made.version)
    assert len(before) == len(history(services))
    assert_sound(services)


@pytest.mark.parametrize(
    ("before", "kind", "reaches", "overrules"),
    [
        # The machine does not overwrite what a person has said since.
        *(
            (["enable", said], kind, -60, False)
            for said in ("human set", "human revert")
            for kind in ("enable", "disable", "permanent", "stale")
        ),
        # Newer evidence overrules them; a word that was overruled still binds older evidence.
        (["human set"], "enable", 1, True),
        (["human set"], "stale", 1, True),
        (["human revert", "enable"], "stale", 0, False),
        # A proven regression turns off whatever a person has said, not what they have turned off.
        (["human set"], "revert", -9999, True),
        (["enable", "human revert"], "revert", -9999, False),
    ],
)
def test_a_machine_overrules_a_person_by_newer_evidence_or_a_regression_and_says_so(
    services: Any, before: list[str], kind: str, reaches: int, overrules: bool
) -> None:
    for earlier in before:
        make(services, earlier, decided_at=now(services) + 61)
        if earlier.startswith("human"):
            word = Author("human:ana", now(services), f"because of {earlier}")

    made = make(services, kind, change_id="later", decided_at=word.at + reaches)

    expected = (True, word, None) if overrules else (False, None, word)
    assert expected == (made.changed, made.overrode, made.held_by)
    entries = history(services)
    assert len(before) + overrules == len(entries)
    assert not overrules or asdict(word) == entries[-1]["overrode"]
    assert json.loads(services.flags.read(FLAG)) == json.loads(entries[-1]["to"])


@pytest.mark.parametrize(
    ("between", "kind"),
    [
        (["other enable"], "late revert"),
        (["disable", "enable"], "late permanent"),
        (["disable", "enable"], "late stale"),
    ],
)
def test_what_follows_from_one_candidate_is_not_done_to_its_successor(
    between: list[str], kind: str, services: Any
) -> None:
    for number, earlier in enumerate(["enable", *between]):
        make(services, earlier, change_id=str(number))
    stood = latest_flag(WORKLOAD, services)

    made = make(services, kind)

    assert (False, *stood) == (made.changed, made.flag, made.version)
    assert made.superseded_by is not None


def test_a_change_made_while_a_repair_reads_the_parameter_is_not_undone_for_a_moment(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(services, "enable")
    read, write, written = services.flags.read, services.flags.write, []

    def changed_meanwhile(name: str) -> str | None:
        monkeypatch.setattr(services.flags, "read", read)
        make(services, "revert")
        return read(name)

    def noted(name: str, value: str) -> None:
        written.append(json.loads(value)["enabled"])
        write(name, value)

    monkeypatch.setattr(services.flags, "write", noted)
    monkeypatch.setattr(services.flags, "read", changed_meanwhile)
    repair_flag(WORKLOAD, services)

    assert [False] == written
    assert_sound(services)


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [(None, False), (OFF.to_json(), False), ("{", True), (Flag(True, "permanent").to_json(), True)],
)
def test_a_parameter_that_nothing_proved_is_turned_off_and_one_that_is_off_left_as_it_is(
    raw: Any, repaired: bool, services: Any
) -> None:
    services.flags.values[FLAG] = raw

    assert repaired is repair_flag(WORKLOAD, services)
    assert (OFF.to_json() if repaired else raw) == services.flags.read(FLAG)


def test_a_flag_too_large_for_the_parameter_is_refused_before_it_is_written_down(
    services: Any,
) -> None:
    """With the moment from which it holds; without that it just fits."""
    empty = Flag(True, "probation", "c", {"x": ""})
    fits = replace(empty, overrides={"x": "y" * (MAX_BYTES - len(empty.to_json()))})
    large = replace(flag_change("enable"), value=fits.to_json())

    with pytest.raises(InvalidInputError, match="4096"):
        change_flag(WORKLOAD, large, services=services)
    assert [] == history(services)


def test_an_override_by_hand_is_of_a_planned_candidate_and_stands_once_it_is_recorded(
    services: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plan_trial(EVENT, services=services)
    for trial in (TRIAL, "0unplanned"):
        services.ledger.append(WORKLOAD, TrialDecided(1, trial, "promote", "key", "d1", "compile"))
    candidate, why = find_candidate(WORKLOAD, "compile", services), Override("ana", "why")

    def fails(*_: Any) -> None:
        raise PermissionError("may not write")

    with monkeypatch.context() as patched, pytest.raises(PermissionError):
        patched.setattr(services.ledger.raw, "put_once", fails)
        set_by_hand(WORKLOAD, candidate, why, services=services)
    with monkeypatch.context() as patched:
        patched.setattr(services.flags, "write", fails)
        made = set_by_hand(WORKLOAD, candidate, why, services=services)
        repair_if_possible(WORKLOAD, services)
    assert "the flag of bert-docs could not be repaired" in caplog.text
    repair_if_possible(WORKLOAD, services)
    assert_sound(services)

    on = Flag(True, "probation", "compile", OVERRIDES, "d1", iso(now(services)))
    assert Changed(True, on, 1, unwritten="may not write") == made
    (entry,) = services.ledger.history(WORKLOAD).flags
    evidence = naming.record_key(WORKLOAD, TRIAL, "evidence")
    details = {"trial": TRIAL, "decision_key": "key", "evidence_key": evidence}
    assert ("human:ana", "set", "why", details) == (
        entry.by, entry.action, entry.reason, entry.details,
    )  # fmt: skip


def test_an_override_that_is_repeated_binds_a_trial_that_began_in_between(services: Any) -> None:
    freeze = Override("ana", "code freeze")
    make(services, "enable")
    services.clock.seconds += 10
    revert_by_hand(WORKLOAD, freeze, services=services)
    services.clock.seconds += 5
    began = now(services)
    started = TrialStarted(began, f"arn:{WORKLOAD}-b", trial="b")
    services.ledger.append(WORKLOAD, started)
    services.clock.seconds += 5
    assert 3 == revert_by_hand(WORKLOAD, freeze, services=services).version

    promotion = flag_change("enable", "trial#b#flag", decided_at=began)
    made = change_flag(WORKLOAD, promotion, services=services)

    assert not made.changed
    assert made.held_by is not None
    assert not latest_flag(WORKLOAD, services)[0].enabled
    assert 3 == len(history(services))
    assert_sound(services)
