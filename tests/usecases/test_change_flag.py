"""A change of the flag: who may overrule whom, and what the ledger keeps of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import MAX_BYTES, OFF, Flag
from compilegate.domain.flag_change import AGAIN_SECONDS, Override
from compilegate.domain.records.flags import Author
from compilegate.domain.records.trials import TrialStarted
from compilegate.usecases.flag.change_flag import (
    change_flag,
    latest_flag,
    repair_flag,
    revert_by_hand,
)
from tests import fakes
from tests.usecases.flag_changes import FLAG, WORKLOAD, assert_sound, flag_change, history


@pytest.fixture
def services() -> Any:
    return fakes.services("prod")


def make(services: Any, kind: str, **given: Any) -> Any:
    services.clock.seconds += 60
    return change_flag(WORKLOAD, flag_change(kind, **given), services=services)


def now(services: Any) -> int:
    return int(services.clock.now())


def test_the_entry_says_who_what_why_and_from_what_to_what(services: Any) -> None:
    change = replace(flag_change("enable"), details={"trial": "t1", "evidence_key": "e"})
    made = change_flag(WORKLOAD, change, services=services)

    (entry,) = history(services)
    assert (True, 1, None, None) == (made.changed, made.version, made.overrode, made.held_by)
    expected = {
        "kind": "flag", "version": 1, "change_id": "enable#1", "by": "evaluate",
        "action": "enable", "reason": "because of enable", "decision_id": "d1", "flag": FLAG,
        "trial": "t1", "evidence_key": "e", "decided_at": 0, "seen_version": None, "based_on": None,
        "at": now(services),
        "from": OFF.to_json(), "to": made.flag.to_json(), "overrode": None,
    }  # fmt: skip
    assert expected == entry
    assert made.flag.since == "2026-09-21T14:13:20Z"
    assert (made.flag, 1) == latest_flag(WORKLOAD, services)
    assert_sound(services)


def test_a_change_made_twice_is_one_change_even_after_another(services: Any) -> None:
    first = make(services, "enable")
    make(services, "revert")
    again = make(services, "enable")

    assert first == again
    assert ["enable", "revert"] == [entry["action"] for entry in history(services)]
    assert_sound(services)


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


def test_a_candidate_set_by_a_person_that_becomes_permanent_overrules_no_one(services: Any) -> None:
    make(services, "human set")
    wish = flag_change("human set").flag
    kept = replace(flag_change("permanent", decided_at=now(services) + 1),
                   value=replace(wish, state="permanent").to_json())  # fmt: skip

    made = change_flag(WORKLOAD, kept, services=services)

    assert (True, None) == (made.changed, made.overrode)


@pytest.mark.parametrize("other", ["human set", "other enable"])
@pytest.mark.parametrize("kind", ["permanent", "stale", "revert"])
def test_what_follows_from_one_candidate_is_not_done_to_its_successor(
    kind: str, other: str, services: Any
) -> None:
    """The review has judged version 1 and died; its change is asked for after version 2."""
    make(services, "enable")
    successor = replace(
        flag_change("human set"),
        change_id="2",
        by="human:ana" if other == "human set" else "evaluate",
    )
    change_flag(WORKLOAD, successor, services=services)
    stood = latest_flag(WORKLOAD, services)

    late = replace(flag_change(kind, decided_at=now(services) + 9), based_on=1)
    made = change_flag(WORKLOAD, late, services=services)

    assert (False, *stood) == (made.changed, made.flag, made.version)
    assert made.superseded_by is not None
    assert successor.by == made.superseded_by.by
    assert_sound(services)


@pytest.mark.parametrize("kind", ["permanent", "stale"])
def test_a_candidate_that_was_off_meanwhile_is_judged_anew(kind: str, services: Any) -> None:
    make(services, "enable")
    make(services, "disable")
    make(services, "enable", change_id="again")

    made = change_flag(WORKLOAD, replace(flag_change(kind), based_on=1), services=services)

    assert (False, True) == (made.changed, made.superseded_by is not None)


@pytest.mark.parametrize("then", ["permanent", "stale", "human set same"])
def test_a_proven_regression_follows_its_candidate(then: str, services: Any) -> None:
    make(services, "enable")
    later = flag_change("permanent" if then == "human set same" else then)
    by = "human:ana" if then == "human set same" else "train"
    change_flag(WORKLOAD, replace(later, by=by), services=services)

    made = change_flag(WORKLOAD, replace(flag_change("revert"), based_on=1), services=services)

    assert (True, "reverted", None) == (made.changed, made.flag.state, made.superseded_by)


@pytest.mark.parametrize("raw", [None, "", "{", Flag(True, "permanent").to_json()])
def test_a_parameter_that_was_lost_or_written_by_hand_is_given_its_value_back(
    raw: str | None, services: Any
) -> None:
    make(services, "enable")
    services.flags.values.pop(FLAG)
    if raw is not None:
        services.flags.write(FLAG, raw)

    assert repair_flag(WORKLOAD, services)
    assert_sound(services)
    assert not repair_flag(WORKLOAD, services)


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


@pytest.mark.parametrize("raw", ["{", Flag(True, "permanent").to_json()])
def test_a_parameter_that_nothing_proved_is_turned_off(raw: str, services: Any) -> None:
    services.flags.write(FLAG, raw)

    assert repair_flag(WORKLOAD, services)
    assert OFF.to_json() == services.flags.read(FLAG)


@pytest.mark.parametrize("raw", [None, OFF.to_json()])
def test_off_without_a_history_is_left_as_it_is(raw: str | None, services: Any) -> None:
    if raw is not None:
        services.flags.write(FLAG, raw)

    assert not repair_flag(WORKLOAD, services)
    assert raw == services.flags.read(FLAG)


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


FREEZE = Override("ana", "code freeze")


@pytest.fixture
def on(services: Any) -> Any:
    """The flag is on."""
    change_flag(WORKLOAD, flag_change("enable"), services=services)
    return services


def say(services: Any, after: int) -> int:
    """Ana's word, so many seconds later; the version that it is recorded as."""
    services.clock.seconds += after
    return revert_by_hand(WORKLOAD, FREEZE, services=services).version


def begin_trial(services: Any, trial: str, after: int) -> int:
    """When it began."""
    services.clock.seconds += after
    now = int(services.clock.now())
    entry = {"kind": "started", "execution": f"arn:{WORKLOAD}-{trial}", "at": now}
    services.ledger.raw.put_once(WORKLOAD, TrialStarted.key_of(trial=trial), entry)
    return now


def test_an_override_that_is_repeated_soon_is_one_version(on: Any) -> None:
    assert [2, 2] == [say(on, 10), say(on, AGAIN_SECONDS)]


def test_the_same_override_later_is_a_new_version(on: Any) -> None:
    assert [2, 3] == [say(on, 10), say(on, AGAIN_SECONDS + 1)]


def test_an_override_that_is_repeated_binds_a_trial_that_began_in_between(on: Any) -> None:
    say(on, 10)
    began = begin_trial(on, "b", after=5)
    said_again = say(on, 5)

    promotion = flag_change("enable", "trial#b#flag", decided_at=began)
    made = change_flag(WORKLOAD, promotion, services=on)

    assert (3, False) == (said_again, made.changed)
    assert made.held_by is not None
    assert not latest_flag(WORKLOAD, on)[0].enabled
    assert 3 == len(history(on))
    assert_sound(on)
