"""What several promotions have saved: each run counts for the promotion that it ended under."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.production.history import history
from compilegate.domain.production.summaries import ExpectedSavings, TimeWindow, weekly_summary
from compilegate.domain.records.canary import CanaryClosed, CanaryRound
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.trials import TrialStarted
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.report.test_history_charts import ON, flag

WEEK = TimeWindow(BEGIN, BEGIN + 7 * DAY)


@pytest.mark.parametrize(
    ("before_its_end", "expected"), [(1, 1 + 2 * 10), (0, 1 + 2 * 10), (-1, 2 + 10)]
)
def test_a_run_counts_for_the_promotion_that_it_ended_under(
    before_its_end: int, expected: float
) -> None:
    """The second promotion stands from a second before, at, or after the end of the third run."""
    runs = [production_run(1, "baseline"), *(production_run(n, "compile") for n in (2, 3, 4))]
    second = int(runs[2].ended_at) - before_its_end
    entries = [replace(run, at=int(run.ended_at)).to_entry() for run in runs]
    flags = [flag(1, 0, ON), {**flag(2, 3, ON), "trial": "t2", "at": second}]

    summary = weekly_summary(
        "bert-docs", history([*entries, *flags]), WEEK,
        expected=ExpectedSavings({"t1": 1.0, "t2": 10.0}),
    )  # fmt: skip

    assert summary.savings is not None
    assert (3, expected) == (summary.savings.runs, summary.savings.expected_usd)


def test_what_is_open_is_of_the_latest_review_the_latest_trial_and_any_of_its_rounds() -> None:
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
    summary = weekly_summary("w", history([*entries, flag(1, 0, ON)]), WEEK)

    assert (7, "0mabc126", "0mabc126") == (summary.watched, summary.trial, summary.canary)
    closed = CanaryClosed(BEGIN + 2 * DAY, "0mabc126", 2, "lost").to_entry()
    summary = weekly_summary("w", history([*entries, closed, flag(1, 0, ON)]), WEEK)
    assert ("0mabc126", None) == (summary.trial, summary.canary)
