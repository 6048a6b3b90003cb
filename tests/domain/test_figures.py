"""Figures that a decision shows of arms and money, computed by hand from unequal arms."""

from __future__ import annotations

import math
from statistics import mean, median, stdev
from typing import Any

import pytest
from scipy import stats

from compilegate.domain.judging import figures
from compilegate.domain.judging.comparison import Samples, compare
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.figures import (
    arm_figures,
    at_scheduled_length,
    break_even_run_minutes,
    difference_figures,
    production_quality_figures,
    saving_figures,
)
from compilegate.domain.judging.whole_job import WholeJob, usd_per_run
from tests.domain.evidence_builder import arm, document, judge, quality_run, runs

METRICS = {"baseline": [1.0, 1.2, 1.1], "compile": [1.1, 1.4]}
# Seconds of a steady step by block: three of the baseline, of the candidate, of its control.
BASE, MINE, NATIVE = (0.10, 0.11, 0.13), (0.05, 0.056, 0.06), (0.08, 0.09, 0.1)


WHOLE = WholeJob(math.log(1.5), 0.01, 8.0, 0.0, 1.0, 0.05, None, None)


def measured(*, compile_seconds: float = 9.0, **changes: Any) -> dict[str, Any]:
    doc = document(metrics=METRICS, full_run_steps=2000, **changes)
    for name, seconds in (("baseline", BASE), ("compile", MINE)):
        for run, step in zip(runs(doc, name, "speed"), seconds, strict=True):
            run["step_seconds"] = [step] * 160
    for run in runs(doc, "baseline", "speed"):
        run["step_seconds"][0] += 1.0
    for run in runs(doc, "compile", "speed"):
        run["step_seconds"][0] += compile_seconds
        run["compile_seconds"] = compile_seconds
    return doc


def of(doc: dict[str, Any], name: str = "compile") -> tuple[Any, Evidence]:
    evidence = read_evidence(doc)
    return evidence.arm(name), evidence


def test_an_arms_figures_are_those_of_its_own_runs():
    doc = measured()
    own = runs(doc, "compile", "speed")
    own[1]["step_seconds"][:30] = [1.0] * 30  # a longer warm-up
    for run, seconds in zip(own, (4.0, 7.0, 5.0), strict=True):
        run["compile_seconds"] = seconds
        run["compiler"] = {"recompiles": True, "graphs": 2, "graph_breaks": int(seconds)}
    own[0] |= {"peak_memory_gib": 3.5, "cold_compile_seconds": 60.0}
    runs(doc, "compile", "quality")[0] |= {"peak_memory_gib": 3.0}
    own[2]["finished"] = False
    arm(doc)["runs"].append({**quality_run(9, 30, 1.0, 70.0), "finished": False, "metric": None})
    candidate, evidence = of(doc)
    shown = arm_figures(candidate, evidence)

    rates = [32 / one.steady_step_seconds for one in evidence.segments["compile"].values() if one]
    low, high = stats.t.interval(0.95, len(rates) - 1, loc=mean(rates), scale=stats.sem(rates))
    assert pytest.approx(mean(rates)) == shown.samples_per_second
    assert pytest.approx((low, high)) == shown.samples_per_second_interval
    assert pytest.approx(1.408 / 3600 / mean(rates) * 1000) == shown.usd_per_1000_samples
    assert pytest.approx(median(MINE)) == shown.step_seconds_median
    assert (60.0, 5.5) == (shown.compile_seconds_cold, shown.compile_seconds_warm)
    assert (None, 7, 2) == (shown.recompiles, shown.graph_breaks, shown.graphs)
    assert (3.5, usd_per_run(candidate, evidence)) == (shown.peak_memory_gib, shown.usd_per_run)
    assert pytest.approx((1.25, stdev([1.1, 1.4]))) == (shown.metric_mean, shown.metric_sd)
    assert (3, 2) == (shown.runs, shown.failed_runs)
    alone = arm_figures(*of(doc, "baseline"))
    assert alone.warm_up_steps < shown.warm_up_steps


def test_what_was_not_measured_is_no_figure():
    doc = measured()
    doc["arms"][1]["runs"] = runs(doc, "compile", "quality")[:1]
    doc["usd_per_hour"] = None
    shown = arm_figures(*of(doc))

    unknown = (
        "samples_per_second", "samples_per_second_interval", "step_seconds_median",
        "warm_up_steps", "compile_seconds_warm", "usd_per_1000_samples", "usd_per_run",
        "metric_sd", "peak_memory_gib",
    )  # fmt: skip
    assert [None] * len(unknown) == [getattr(shown, name) for name in unknown]
    assert (1.1, 1, 0) == (shown.metric_mean, shown.runs, shown.failed_runs)


def test_a_difference_is_shown_with_the_runs_of_each_side():
    candidate, evidence = of(measured())
    ours, theirs = candidate.full_runs, evidence.baseline.full_runs
    none = difference_figures(None, evidence, ours, theirs)

    assert (None, None, 0.02) == (none.estimate, none.spread, none.margin)
    assert (3, 2, 0) == (none.runs.baseline, none.runs.candidate, none.runs.history)


@pytest.mark.parametrize("price", [2.0, 1.2])
def test_a_saving_is_a_runs_price_over_a_year_with_the_bounds_of_the_speedup(price):
    """A run of an hour at 1.408 dollars, 50 a week, 1.5 times as fast at another price."""
    doc = measured()
    doc |= {"runs_per_week": 50, "plan": {"spent_usd": 12.0}}
    arm(doc)["usd_per_hour"] = price * 1.408
    for run in runs(doc, "baseline", "quality"):
        run["wall_seconds"] = 3600.0
    candidate, evidence = of(doc)
    saving = saving_figures(candidate, evidence, WHOLE)

    assert saving is not None
    per_run = [1.408 * (1 - price / speedup) for speedup in (1.5, *WHOLE.interval)]
    assert pytest.approx(per_run[0]) == saving.usd_per_run
    assert pytest.approx(per_run[1:]) == list(saving.interval_usd_per_run)
    assert pytest.approx([one * 50 * 52 for one in per_run]) == [
        saving.usd_per_year, *saving.interval_usd_per_year,
    ]  # fmt: skip
    payback = pytest.approx(12 / per_run[0]) if per_run[0] > 0 else None
    assert (pytest.approx(1.408), 12.0, payback) == (
        saving.usd_per_run_baseline, saving.trial_usd, saving.payback_runs,
    )  # fmt: skip
    assert pytest.approx(break_even_run_minutes(candidate, evidence)) == (
        saving.break_even_run_minutes
    )


@pytest.mark.parametrize("unknown", ["usd_per_hour", "runs_per_week", "whole"])
def test_without_a_price_a_schedule_or_a_speedup_there_is_no_saving(unknown):
    doc = measured()
    assert saving_figures(*of(doc), WHOLE) is not None

    doc[unknown] = None
    assert None is saving_figures(*of(doc), None if unknown == "whole" else WHOLE)


def steady_ratio(names: tuple[float, ...] = MINE) -> float:
    return math.exp(mean(math.log(base / mine) for base, mine in zip(BASE, names, strict=True)))


def test_the_compilation_pays_from_the_length_at_which_it_is_saved():
    """Of nine seconds in the first step all but that step's own are overhead."""
    ratio, overhead = steady_ratio(), break_even(9.0)
    slower = measured()
    for run in runs(slower, "compile", "speed"):
        run["step_seconds"] = [0.2] * 160

    assert pytest.approx(overhead * ratio / (ratio - 1) / 60) == minutes(measured())
    assert None is minutes(slower)
    # One that warms up no longer than the baseline pays at once.
    assert 0.0 == minutes(measured(compile_seconds=0.0))


def break_even(seconds: float) -> float:
    candidate, evidence = of(measured(compile_seconds=seconds))
    pairs = evidence.steady_pairs(candidate)
    return mean(mine.overhead_seconds - base.overhead_seconds for base, mine in pairs)


def minutes(doc: dict[str, Any]) -> float | None:
    return break_even_run_minutes(*of(doc))


@pytest.mark.parametrize(
    ("times", "shown"), [(None, False), (0.5, True), (0.51, False), (1.99, False), (2.0, True)]
)
def test_production_of_another_length_has_an_answer_of_its_own(times, shown):
    doc = measured()
    for run in runs(doc, "baseline", "quality"):
        run["wall_seconds"] = 2 * 3600.0
    doc["run_hours"] = times and 2 * times
    at_length = at_scheduled_length(*of(doc))

    assert shown is (at_length is not None)
    if at_length is not None and times is not None:
        seconds, ratio = 2 * 3600 * times, steady_ratio()
        assert seconds == at_length.seconds
        assert pytest.approx(seconds / (break_even(9.0) + seconds / ratio)) == at_length.speedup
        assert at_length.interval[0] < at_length.speedup < at_length.interval[1]


def test_without_steady_blocks_no_other_length_is_spoken_of():
    doc = measured()
    doc["run_hours"] = 100.0
    for name in ("baseline", "compile"):
        for run in runs(doc, name, "speed"):
            run["step_seconds"] = run["step_seconds"][:30]

    assert None is at_scheduled_length(*of(doc))
    assert None is minutes(doc)


def test_where_a_script_decides_how_long_it_trains_there_is_neither(monkeypatch):
    doc = measured()
    doc["run_hours"] = 100.0
    monkeypatch.setattr(figures, "timed_to_target", lambda *_: True)

    assert None is at_scheduled_length(*of(doc))
    assert None is saving_figures(*of(doc), WHOLE)


def controlled(doc: dict[str, Any], *, reasons: tuple[str | None, ...] = ()) -> Any:
    native = [
        {**run, "step_seconds": [step] * 160}
        for run, step in zip(runs(doc, "compile", "speed"), NATIVE, strict=True)
    ]
    if reasons:
        native = [
            {**run, "step_seconds": [], "finished": False, "reason": reason}
            for run, reason in zip(native, reasons, strict=False)
        ]
    control = {**arm(doc), "name": "compile-native", "runs": native, "overrides": {}}
    (shown,) = judge({**doc, "controls": [control]}).controls
    return shown


def test_a_control_stands_between_the_baseline_and_its_candidate():
    shown = controlled(measured(compile_seconds=0.0))

    pairs = zip(NATIVE, MINE, strict=True)
    assert ("compile", 3, None) == (shown.candidate, shown.blocks, shown.reason)
    assert pytest.approx(steady_ratio(NATIVE), rel=0.01) == shown.speedup
    compiled = math.exp(mean(math.log(native / mine) for native, mine in pairs))
    assert pytest.approx(compiled, rel=1e-3) == shown.compiler_speedup


@pytest.mark.parametrize(
    ("reasons", "why"),
    [(("boom", "crash"), "crash"), ((None,), "none of its blocks can be compared")],
)
def test_a_control_that_was_not_measured_says_why(reasons, why):
    shown = controlled(measured(), reasons=reasons)

    assert (0, None, None) == (shown.blocks, shown.speedup, shown.compiler_speedup)
    assert why in shown.reason


@pytest.mark.parametrize(
    ("ours", "theirs", "history", "interval"),
    [
        ([1.1, 1.4], [1.0, 1.2, 1.1], [], True),
        ([1.1], [1.0], [], False),
        ([1.1], [1.0, 1.2], [], True),
        ([1.0, 1.0], [1.0, 1.0], [], False),
        ([1.1], [1.0], [1.0, 1.2, 1.4], True),
        ([1.1], [], [], False),
    ],
)
def test_production_is_compared_with_every_baseline_run_there_is(ours, theirs, history, interval):
    doc = measured()
    doc["quality"]["history"] = history
    doc["arms"][0]["runs"] = [quality_run(n, n, value, 70.0) for n, value in enumerate(theirs)]
    doc["arms"][1]["runs"] = [
        {**quality_run(n + 10, n, value, 70.0), "stage": "probation"}
        for n, value in enumerate(ours)
    ]
    candidate, evidence = of(doc)
    shown = production_quality_figures(evidence, candidate)

    assert (len(theirs), len(ours), len(history)) == (
        shown.runs.baseline, shown.runs.candidate, shown.runs.history,
    )  # fmt: skip
    assert interval is (shown.interval is not None)
    assert (0.95, "eval_loss", "minimize") == (
        shown.confidence, shown.metric, shown.goal,
    )  # fmt: skip
    compared = compare(
        Samples(
            candidate=evidence.oriented(ours), baseline=evidence.oriented(theirs),
            history=evidence.oriented(history),
        )
    )  # fmt: skip
    assert (compared and compared.difference) == shown.estimate
    assert (compared and compared.spread) == shown.spread
    assert not interval or (compared and compared.interval(0.025)) == pytest.approx(shown.interval)
