"""Whose word a trial may set aside: what it knew when it began decides, not whose clock is fast."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import ledger_keys
from compilegate.domain.flag import Flag
from compilegate.usecases.flag.change_flag import change_flag
from compilegate.usecases.trial.apply_flag import apply_flag
from compilegate.usecases.trial.lock import acquire_lock
from tests.usecases.flag_changes import wanted
from tests.usecases.test_settled import applied, decide
from tests.usecases.trial_builder import EVENT, TRIAL, load

SKEW = 3600


@pytest.mark.parametrize(("said", "changed"), [("before the trial", True), ("since", False)])
def test_what_a_person_said_binds_a_trial_that_began_earlier(
    said: str, changed: bool, services: Any
) -> None:
    event = decide(services, "promote", "enable")
    started = {"kind": "started", "execution": "x", "at": services.clock.now()}
    services.ledger.put_once("bert-docs", ledger_keys.started_entry(TRIAL), started)
    services.clock.seconds += 10 if said == "since" else -10
    change_flag("bert-docs", wanted("human revert"), services=services)
    services.clock.seconds += 3600

    answer, kept = applied(event, services), load(services, "flag")

    assert {"changed": changed, "enabled": changed} == answer
    assert changed is (kept["overrode"] is not None)
    assert changed is (kept["held_by"] is None)
    assert "human:ana" == (kept["overrode"] or kept["held_by"])["by"]


def test_a_trial_without_a_beginning_overrules_nobody(services: Any) -> None:
    change_flag("bert-docs", wanted("human revert"), services=services)
    services.clock.seconds += 3600

    assert not apply_flag(decide(services, "promote", "enable"), services=services)["changed"]


@pytest.mark.parametrize(("said", "changed"), [("before the trial", True), ("since", False)])
def test_a_clock_that_goes_wrong_changes_nothing_about_whose_word_binds(
    said: str, changed: bool, services: Any
) -> None:
    """Whoever speaks has a clock that is an hour fast before the trial, an hour slow after it."""
    event = decide(services, "promote", "enable")
    if said == "since":
        acquire_lock(EVENT, services=services)
    services.clock.seconds += SKEW if changed else -SKEW
    change_flag("bert-docs", wanted("human revert"), services=services)
    services.clock.seconds += 60 - SKEW if changed else 60 + SKEW
    if said == "before the trial":
        acquire_lock(EVENT, services=services)

    assert changed is applied(event, services)["changed"]
    assert changed is (load(services, "flag")["held_by"] is None)


def test_a_later_word_does_not_hide_the_one_that_binds(services: Any) -> None:
    """Without a version it goes by the clocks: ana's word is newer than the trial, bo's is not."""
    event, now = decide(services, "promote", "enable"), services.clock.now()
    started = {"kind": "started", "execution": "x", "at": now}
    services.ledger.put_once("bert-docs", ledger_keys.started_entry(TRIAL), started)
    for by, seconds in (("human:ana", now + 50), ("human:bo", now - 50)):
        services.clock.seconds = seconds
        change_flag("bert-docs", replace(wanted("human revert", by), by=by), services=services)

    assert not applied(event, services)["changed"]
    assert "human:ana" == load(services, "flag")["held_by"]["by"]


@pytest.mark.parametrize(("candidate", "changed"), [("compile", False), ("other", True)])
def test_a_trial_that_began_before_its_candidate_was_reverted_does_not_turn_it_on_again(
    candidate: str, changed: bool, services: Any
) -> None:
    event = decide(services, "promote", "enable")
    on = wanted("human set" if candidate == "other" else "enable").flag
    change_flag("bert-docs", replace(wanted("enable"), flag=on), services=services)
    acquire_lock(EVENT, services=services)
    off = Flag(False, "reverted", candidate)
    change_flag("bert-docs", replace(wanted("revert"), by="train", flag=off), services=services)

    assert changed is applied(event, services)["enabled"]
    assert changed is (load(services, "flag")["held_by"] is None)


def test_a_trial_that_began_after_the_revert_turns_it_on_again(services: Any) -> None:
    event = decide(services, "promote", "enable")
    change_flag("bert-docs", wanted("enable"), services=services)
    change_flag("bert-docs", replace(wanted("revert"), by="train"), services=services)
    acquire_lock(EVENT, services=services)

    assert applied(event, services)["enabled"]
