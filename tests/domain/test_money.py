"""The figures of a decision: money by hand, intervals by scipy, unknown where unknown."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from scipy import stats

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, QualityRuns
from compilegate.domain.judging.evidence_file import read_evidence
from tests.domain.evidence_builder import (
    BASE_WALL,
    CENTRE,
    GOOD,
    PROBATION_MARGIN,
    add_candidate,
    arm,
    document,
    judge,
    probation_document,
    runs,
    sample,
    watch,
)

PRICE, JOB = 1.408, 65.0
BASE_USD = JOB / 3600 * PRICE


def saving(doc: dict[str, Any]) -> dict[str, Any]:
    money = judge(doc).saving
    assert money is not None
    figures: dict[str, Any] = write(money)
    return figures


def speedup(doc: dict[str, Any]) -> dict[str, Any]:
    speed = judge(doc).speedup
    assert speed is not None
    figures: dict[str, Any] = write(speed)
    return figures


def figures(decision: Decision, name: str = "compile") -> dict[str, Any]:
    shown: dict[str, Any] = write(next(item for item in decision.arms if item.name == name))
    return shown


def test_a_saving_is_the_baselines_price_times_the_share_of_time_saved() -> None:
    doc = document(metrics=GOOD)
    money, share = saving(doc), 1 - 1 / speedup(doc)["estimate"]

    assert pytest.approx(BASE_USD) == money["usd_per_run_baseline"]
    assert pytest.approx(BASE_USD * share) == money["usd_per_run"]
    assert pytest.approx(BASE_USD * share * 2800 * 52) == money["usd_per_year"]


def test_the_savings_interval_is_the_speedups() -> None:
    doc = document(metrics=GOOD)
    money, bounds = saving(doc), [BASE_USD * (1 - 1 / s) for s in speedup(doc)["interval"]]

    assert pytest.approx(bounds) == money["interval_usd_per_run"]
    assert pytest.approx([x * 2800 * 52 for x in bounds]) == money["interval_usd_per_year"]


def test_a_dearer_cluster_saves_less() -> None:
    doc = document(metrics=GOOD)
    arm(doc)["usd_per_hour"] = 1.1 * PRICE

    assert (
        pytest.approx(BASE_USD * (1 - 1.1 / speedup(doc)["estimate"]))
        == (saving(doc)["usd_per_run"])
    )


def test_a_trial_costs_its_segments_and_its_extra_runs() -> None:
    doc = document(metrics=GOOD)
    seconds = sum(sum(run["step_seconds"]) for name in ("baseline", "compile")
                  for run in runs(doc, name, "speed"))  # fmt: skip
    seconds += sum(run["wall_seconds"] for name in ("baseline", "compile")
                   for run in runs(doc, name))  # fmt: skip
    money = saving(doc)

    assert pytest.approx(seconds / 3600 * PRICE) == money["trial_usd"]
    assert pytest.approx(money["trial_usd"] / money["usd_per_run"]) == money["payback_runs"]


def test_runs_that_production_made_anyway_cost_the_trial_nothing() -> None:
    doc = document(metrics=GOOD)
    before = saving(doc)["trial_usd"]
    for run in runs(doc, "baseline"):
        run["mode"] = "production"
    for run in runs(doc):
        run["mode"] = "canary"
    walls = [run["wall_seconds"] for name in ("baseline", "compile") for run in runs(doc, name)]

    assert pytest.approx(before - sum(walls) / 3600 * PRICE) == saving(doc)["trial_usd"]


def test_the_bill_knows_better_than_the_evidence() -> None:
    assert 12.5 == saving({**document(metrics=GOOD), "plan": {"spent_usd": 12.5}})["trial_usd"]


def test_an_extra_run_of_unknown_length_leaves_the_trials_price_unknown() -> None:
    doc = document(metrics=GOOD)
    runs(doc)[0]["wall_seconds"] = None

    assert (None, None) == (saving(doc)["trial_usd"], saving(doc)["payback_runs"])


@pytest.mark.parametrize("key", ["usd_per_hour", "runs_per_week"])
def test_without_a_price_or_a_schedule_there_is_no_saving(key: str) -> None:
    assert judge({**document(metrics=GOOD), key: None}).saving is None


def test_before_any_full_run_prices_are_extrapolated_from_the_blocks() -> None:
    decision = judge(document())

    assert pytest.approx(60 / 3600 * PRICE, rel=0.1) == figures(decision, "baseline")["usd_per_run"]


def test_past_wall_clocks_price_the_baseline() -> None:
    doc = document()
    doc["quality"]["history_wall_seconds"] = [100.0, 140.0]

    assert pytest.approx(120 / 3600 * PRICE) == figures(judge(doc), "baseline")["usd_per_run"]


def test_break_even_is_the_overhead_over_the_share_saved() -> None:
    """3 s of compilation at 1.4x: 3 x 1.4 / 0.4 = 10.5 s."""
    assert pytest.approx(10.5 / 60, rel=0.1) == saving(document())["break_even_run_minutes"]
    assert saving(document(speedup=0.9))["break_even_run_minutes"] is None


def with_curves(doc: dict[str, Any], *, faster: float, floor: float = 2.0) -> dict[str, Any]:
    """Loss curves of 100 points; the candidate's falls ``faster`` times as fast."""
    for name, pace in (("baseline", 1.0), ("compile", faster)):
        low = 2.0 if name == "baseline" else floor
        for run in runs(doc, name):
            run["loss_curve"] = [[n, low + math.exp(-n * pace / 300)] for n in range(20, 2001, 20)]
    return doc


def test_fewer_steps_to_the_same_loss_cost_less() -> None:
    same_quality = saving(with_curves(document(metrics=GOOD), faster=2.0))["same_quality"]
    price = figures(judge(document(metrics=GOOD)))["usd_per_run"]

    assert 2000 == same_quality["steps_baseline"]
    assert pytest.approx(1050, abs=60) == same_quality["steps_candidate"]
    assert pytest.approx(BASE_USD) == same_quality["usd_baseline"]
    assert (
        pytest.approx(price * same_quality["steps_candidate"] / 2000)
        == same_quality["usd_candidate"]
    )


def test_a_candidate_that_never_gets_there_has_no_price_for_the_same_quality() -> None:
    same_quality = saving(with_curves(document(metrics=GOOD), faster=1.0, floor=2.5))[
        "same_quality"
    ]

    assert (None, None) == (same_quality["steps_candidate"], same_quality["usd_candidate"])
    assert same_quality["usd_baseline"] is not None


@pytest.mark.parametrize("replicates", [2, 3, 4])
def test_curves_that_end_alike_but_for_chance_nearly_always_have_a_price(replicates: int) -> None:
    """Compared run by run with the mean final, 67 to 96 % of these trials had none."""
    unpriced = 0
    for trial in range(40):
        rng = random.Random(trial)
        doc = document(metrics={name: GOOD[name][:1] * replicates for name in GOOD})
        for run in [*runs(doc, "baseline"), *runs(doc)]:
            run["metric"] += 0.004 * rng.gauss(0, 1)
            end = 2.0 + 0.02 * rng.gauss(0, 1)
            run["loss_curve"] = [
                [n, end + math.exp(-n / 300) + 0.01 * rng.gauss(0, 1)] for n in range(20, 2001, 20)
            ]
        same_quality = saving(doc)["same_quality"]
        unpriced += same_quality["usd_baseline"] is None or same_quality["usd_candidate"] is None

    assert unpriced <= 4


@pytest.mark.parametrize("curve", [None, "no", [[1, 2.0]] * 9, [["a", 1]] * 20, [[1]] * 20])
def test_without_usable_curves_the_same_quality_has_no_price(curve: object) -> None:
    doc = with_curves(document(metrics=GOOD), faster=1.0)
    for run in runs(doc):
        run["loss_curve"] = curve

    assert saving(doc)["same_quality"] is None


def test_throughput_carries_students_interval() -> None:
    doc = document(blocks=4)
    steady = read_evidence(doc).segments["compile"].values()
    rates = [32 / segment.steady_step_seconds for segment in steady if segment]
    mean = sum(rates) / 4
    figure = figures(judge(doc))

    assert pytest.approx(mean) == figure["samples_per_second"]
    assert pytest.approx(stats.t.interval(0.95, 3, loc=mean, scale=stats.sem(rates))) == (
        tuple(figure["samples_per_second_interval"])
    )


def test_an_arms_figures_say_what_its_runs_recorded() -> None:
    doc = document(metrics=GOOD)
    first = runs(doc, stage="speed")[0]
    first.update(peak_memory_gib=19.4, compiler={"graphs": 3, "recompiles": 1, "graph_breaks": 2})
    runs(doc)[0].update(cold_compile_seconds=41.0)
    figure = figures(judge(doc))

    assert (19.4, 3, 1, 2, 41.0) == tuple(
        figure[key]
        for key in (
            "peak_memory_gib", "graphs", "recompiles", "graph_breaks", "compile_seconds_cold",
        )
    )  # fmt: skip
    assert 3.0 == figure["compile_seconds_warm"]
    assert (3, 0) == (figure["runs"], figure["failed_runs"])
    assert pytest.approx(stats.describe(GOOD["compile"]).variance) == figure["metric_sd"] ** 2


def test_every_arm_has_its_figures() -> None:
    doc = document(metrics=GOOD)
    add_candidate(doc, "other", speedup=1.2)

    assert ["baseline", "compile", "other"] == [item.name for item in judge(doc).arms]


def test_the_speed_of_a_promotion_counts_productions_jobs_too() -> None:
    doc = probation_document(history=6, wall_sd=0.05)
    before = speedup(doc)
    for log in sample(5, 0.0, 0.02):
        watch(doc, metric=CENTRE, wall_seconds=BASE_WALL / 1.4 * math.exp(log))
    after = speedup(doc)

    assert (3, 8) == (before["full_runs"], after["full_runs"])
    assert pytest.approx(1.4, rel=0.02) == after["measured"]["estimate"]
    assert before["interval"][0] < after["interval"][0] < after["interval"][1]
    assert after["weight"] > before["weight"]


def test_production_quality_is_compared_with_every_baseline_run_known() -> None:
    doc = probation_document()
    for value in sample(6, CENTRE - PROBATION_MARGIN / 4, 0.002):
        watch(doc, metric=value)
    quality = judge(doc).quality
    assert quality is not None

    assert pytest.approx(-PROBATION_MARGIN / 4, abs=1e-3) == quality.estimate
    assert quality.interval and quality.interval[0] < quality.estimate < quality.interval[1]
    assert QualityRuns(baseline=3, candidate=6, history=20) == quality.runs
