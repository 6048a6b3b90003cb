"""What several promotions have saved: each run counts for the promotion that it ended under."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.production.history import history
from compilegate.domain.production.summaries import (
    ChangeOfFlag,
    ExpectedSavings,
    TimeWindow,
    WorkloadWeek,
    workload_week,
)
from compilegate.domain.records.production import CanaryClosed, CanaryRound, CapacityWait, Review
from compilegate.domain.records.trials import ApprovalAnswer, ApprovalRequested, TrialStarted
from tests.domain.production.run_builder import BEGIN, DAY, production_run

WEEK = TimeWindow(BEGIN, BEGIN + 7 * DAY)
OFF, ON = Flag(False, "off"), Flag(True, "probation", "compile")


def flag(version: int, after: int, to: Flag) -> dict[str, Any]:
    """A change of the flag after so many runs."""
    return {
        "kind": "flag", "version": version, "at": int(BEGIN + (after + 0.5) * DAY),
        "by": "evaluate", "action": "enable", "reason": "proven", "trial": "t1", "change_id": "c",
        "from": OFF.to_json(), "to": to.to_json(), "overrode": None,
    }  # fmt: skip


@pytest.mark.parametrize(("before_its_end", "expected"), [(1, 1 + 2 * 10), (-1, 2 + 10)])
def test_a_run_counts_for_the_promotion_that_it_ended_under(before_its_end, expected):
    """The second promotion stands from a second before, at, or after the end of the third run."""
    runs = [production_run(1, "baseline"), *(production_run(n, "compile") for n in (2, 3, 4))]
    second = int(runs[2].ended_at) - before_its_end
    entries = [replace(run, at=int(run.ended_at)).to_entry() for run in runs]
    flags = [flag(1, 0, ON), {**flag(2, 3, ON), "trial": "t2", "at": second}]

    summary = workload_week(
        "bert-docs", history([*entries, *flags]), WEEK,
        expected=ExpectedSavings({"t1": 1.0, "t2": 10.0}),
    )  # fmt: skip

    assert (3, expected) == (summary.savings.runs, summary.savings.expected_usd)


def test_what_is_open_is_of_the_latest_review_the_latest_trial_and_any_of_its_rounds():
    def begun(trial: str, day: int) -> TrialStarted:
        return TrialStarted(BEGIN + day * DAY, f"arn:aws:states:us-east-1:1:execution:e:w-{trial}")

    def watched(day: int, runs: int) -> Review:
        return Review(BEGIN + day * DAY, f"r{day}", "t1", "compile", runs=runs)

    def asked(trial: str, number: int) -> CanaryRound:
        return CanaryRound(trial, number, (), {}, "j", BEGIN + 9 * DAY, 600, hold=True)

    records = [
        begun("0mabc126", 3), begun("0mabc124", 1), begun("0mabc125", 2),
        watched(4, 7), watched(3, 5), watched(2, 9),
        asked("0mabc126", 1), CanaryClosed(BEGIN + 2 * DAY, "0mabc126", 1, "complete"),
        asked("0mabc126", 2),
    ]  # fmt: skip
    entries = [record.to_entry() for record in records]
    summary = workload_week("w", history([*entries, flag(1, 0, ON)]), WEEK)

    assert (7, "0mabc126", "0mabc126") == (summary.watched, summary.trial, summary.canary)
    assert ("compile", True) == (summary.candidate, summary.enabled)
    closed = CanaryClosed(BEGIN + 2 * DAY, "0mabc126", 2, "lost").to_entry()
    summary = workload_week("w", history([*entries, closed, flag(1, 0, ON)]), WEEK)
    assert ("0mabc126", None) == (summary.trial, summary.canary)


def test_a_week_begins_with_its_first_second_and_ends_before_its_last():
    first, end = BEGIN, BEGIN + 7 * DAY

    def ended(at: float, arm: str, **changed: Any) -> dict[str, Any]:
        run = production_run(1, arm, **changed)
        return replace(run, run=f"r{at}", started_at=at - 9, ended_at=at, at=int(at)).to_entry()

    def waited(at: int, run: str, attempt: int) -> dict[str, Any]:
        return CapacityWait(
            at, run, attempt, f"{run}{attempt}", "compile", None, 0.0, 9, None
        ).to_entry()

    def changed(version: int, at: int, to: Flag, action: str) -> dict[str, Any]:
        return {**flag(version, 0, to), "at": at, "action": action, "by": "human:ann"}

    entries = [
        ended(first - 1, "baseline", finished=False), ended(first, "baseline"),
        ended(first + 1, "compile", finished=False), ended(end - 1, "compile"),
        ended(end, "compile", finished=False),
        waited(first - 1, "a", 0), waited(first, "b", 0), waited(first + 5, "b", 1),
        waited(end - 1, "c", 0), waited(end, "d", 0),
        changed(1, first - 1, ON, "before"), changed(2, first, OFF, "first"),
        changed(3, end - 1, ON, "last"), changed(4, end, OFF, "after"),
    ]  # fmt: skip
    summary = workload_week("w", history(entries), WEEK, owner="ml")

    assert ({"baseline": 1, "compile": 2}, 1, 2) == (summary.runs, summary.failed, summary.waited)
    made = [ChangeOfFlag(*one, "human:ann") for one in ((first, "first"), (end - 1, "last"))]
    assert made == list(summary.changes)
    assert ("ml", "off", False, None) == (
        summary.owner, summary.state, summary.enabled, summary.approval,
    )  # fmt: skip


def test_the_first_question_that_is_open_waits_for_a_person():
    asked = [
        ApprovalRequested(BEGIN + n, BEGIN + DAY, trial, "e", "d", "k", "compile")
        for n, trial in enumerate(("t1", "t2", "t3"))
    ]
    answer = ApprovalAnswer(BEGIN + 9, "t1", "human:ann", False, "no")
    entries = [record.to_entry() for record in (*asked, answer)]

    assert "t2" == workload_week("w", history(entries), WEEK).approval


@pytest.mark.parametrize(
    ("changed", "quiet", "is_open"),
    [
        ({}, True, False),
        ({"runs": {"baseline": 1}}, False, False),
        ({"waited": 1}, False, False),
        ({"changes": (ChangeOfFlag(1, "revert", "train"),)}, False, False),
        ({"trial": "t"}, False, True),
        ({"approval": "t"}, False, True),
        ({"state": "probation"}, False, True),
        ({"state": "stale"}, False, True),
        ({"state": "permanent", "candidate": "c", "failed": 3, "watched": 9}, True, False),
    ],
)
def test_a_week_is_quiet_where_nothing_ran_changed_or_is_open(changed, quiet, is_open):
    week = WorkloadWeek(
        **{"workload": "w", "owner": None, "state": "off", "enabled": False, **changed}
    )

    assert (quiet, is_open) == (week.quiet, week.open)
