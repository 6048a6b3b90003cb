"""What several promotions have saved: each run counts for the promotion that it ended under."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilegate.domain.production.history import history
from compilegate.domain.production.summaries import ExpectedSavings, TimeWindow, weekly_summary
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
