"""Manual changes of a flag: what a person may say, and which change follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.flag_change import (
    LONGEST_REASON,
    SET,
    Override,
    override_change,
    turned_off,
)
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.trials import TrialStarted

NOW = 1_790_000_000
ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, decision_id="d1")
ANA = Override("ana", "measured elsewhere")


def change(
    override: Override = ANA,
    flag: Flag = ON,
    versions: tuple[FlagVersion, ...] = (),
    trials: tuple[TrialStarted, ...] = (),
    now: int = NOW,
) -> FlagVersion:
    details = {"trial": "t1"}
    return override_change(SET, flag, override, versions, trials, now=now, details=details)


def made_of(made: FlagVersion, **changes: Any) -> FlagVersion:
    """The version that a change became."""
    return replace(made, **{"version": 1, **changes})


@pytest.mark.parametrize(
    "reason", ["", "   ", "two\nlines", "a \x1b[31mcolour", "x" * (LONGEST_REASON + 1)]
)
def test_an_override_whose_reason_is_not_one_short_line_is_refused(reason):
    with pytest.raises(InvalidInputError, match="--reason"):
        Override("ana", reason)


def test_the_longest_reason_counts_without_the_spaces_around_it():
    reason = f"  {'x' * LONGEST_REASON} "

    assert "x" * LONGEST_REASON == change(Override("ana", reason)).reason


def test_an_override_says_who_wants_what_and_which_trial_it_rests_on():
    asked = change()

    assert ("human:ana", SET, ON, "d1", {"trial": "t1"}, NOW) == (
        asked.by, asked.action, asked.flag, asked.decision_id, asked.details, asked.decided_at,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("now", "state"),
    [(ON, "reverted"), (OFF, "off"), (Flag(False, "stale", "compile"), "stale")],
)
def test_a_flag_that_is_off_keeps_the_state_that_says_why(now, state):
    off = turned_off(now)

    assert (False, state, now.candidate, now.decision_id, {}) == (
        off.enabled, off.state, off.candidate, off.decision_id, off.overrides,
    )  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"override": Override("ben", "measured elsewhere")},
        {"override": Override("ana", "another reason")},
        {"flag": turned_off(ON)},
    ],
    ids=["author", "reason", "flag"],
)
def test_an_override_that_says_something_else_is_another_change(other):
    first = change()

    assert first.change_id != change(**other).change_id
    assert first.change_id != change(versions=(made_of(first),), **other).change_id


def test_an_override_that_a_later_trial_is_not_bound_by_is_made_anew():
    first = change()
    version = made_of(first)
    before, after = (TrialStarted(NOW + at, "arn:x-bert-docs-t2", known)
                     for at, known in ((-60, 0), (60, 1)))  # fmt: skip

    assert first.change_id == change(versions=(version,), trials=(before,)).change_id
    assert first.change_id != change(versions=(version,), trials=(after,), now=NOW + 90).change_id
