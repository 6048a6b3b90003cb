"""One estimate of whole jobs: blocks predict it, full runs measure it, money follows it."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging import whole_job
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.speed import block_log_speedups
from compilegate.domain.judging.whole_job import moderated
from tests.domain.evidence_builder import (
    GOOD,
    codes,
    document,
    full_runs,
    judge,
    runs,
    sample,
    speed_run,
)
from tests.domain.whole_job_builder import whole_jobs


def timed(doc: dict[str, Any], base: list[float], mine: list[float]) -> dict[str, Any]:
    """The trial with whole jobs of so many seconds."""
    for name, walls in (("baseline", base), ("compile", mine)):
        for run, wall in zip(runs(doc, name), walls, strict=True):
            run["wall_seconds"] = wall
    return doc


def around(seconds: float, sd: float, count: int = 3) -> list[float]:
    return [seconds * math.exp(log) for log in sample(count, 0.0, sd)]


def demo_production() -> dict[str, Any]:
    """Blocks 1.43x (1.11 to 1.85), whole jobs 1.06x: a short job that pays for start-up."""
    policy = {"min_proven_speedup": 1.03, "min_mean_speedup": 1.10, "max_quality_runs": 3}
    doc = document(metrics=GOOD, policy=policy, compile_seconds=0.0)
    doc.update(runs_per_week=1400, runs_remaining=72800)
    for block, log in enumerate(sample(3, math.log(1.43), 0.103)):
        (run,) = [run for run in runs(doc, stage="speed") if run["block"] == block]
        base = next(r for r in runs(doc, "baseline", "speed") if r["block"] == block)
        run["step_seconds"] = [x / math.exp(log) for x in base["step_seconds"]]
    return timed(doc, around(50, 0.057), around(50 / 1.06, 0.057))


def speedup(decision: Decision) -> dict[str, Any]:
    assert decision.speedup is not None
    return write(decision.speedup)


def test_short_blocks_that_whole_jobs_do_not_confirm_promote_nothing():
    """Judge 1.2.0 promoted this as 1.43x, with a saving of -$98 to $269 a year beside it."""
    decision = judge(demo_production())
    money = decision.saving.interval_usd_per_year if decision.saving else [0, 0]

    assert pytest.approx(1.43) == speedup(decision)["predicted"]["estimate"]
    assert pytest.approx(1.06) == speedup(decision)["measured"]["estimate"]
    assert money[0] < 0 < money[1]
    assert Verdict.INCONCLUSIVE == decision.verdict
    assert "saving_unproven" == decision.reasons[0].code


def test_the_combination_is_that_of_two_sources_by_hand():
    doc = timed(document(metrics=GOOD), around(65, 0.05), around(47, 0.05))
    doc["quality"].update(history=[2.5] * 6, history_wall_seconds=around(66, 0.05, 6))
    evidence = read_evidence(doc)
    logs = block_log_speedups(evidence.candidates[0], evidence)
    s_blocks = (3 * 0.03**2 + 2 * np.var(logs, ddof=1)) / 5
    s_walls = (3 * 0.08**2 + (2 + 2 + 5) * 0.05**2) / 12
    past = 1 / (1 / 6 + 0.25)
    reference = (past * math.log(66) + 3 * math.log(65)) / (past + 3)
    p, d = np.mean(logs), reference - math.log(47)
    v_p, v_d = s_blocks / 3, s_walls * (1 / 3 + 1 / (past + 3))
    tau = max(whole_job.UNSEEN_SD**2, (p - d) ** 2 - v_p - v_d)
    weights = np.array([1 / (v_p + tau), 1 / v_d])
    shares, dfs = weights / weights.sum(), np.array([5, 12])
    error = math.sqrt((1 + 4 * sum(shares * (1 - shares) / dfs)) / weights.sum())
    df = 1 / sum(shares**2 / dfs)
    half = stats.t.ppf(0.975, df) * error
    whole = whole_jobs(doc)

    assert pytest.approx(shares @ [p, d]) == whole.log
    assert pytest.approx([math.exp(whole.log - half), math.exp(whole.log + half)]) == list(
        whole.interval
    )
    assert pytest.approx(shares[1]) == whole.weight


def test_before_full_runs_only_the_prediction_counts_with_what_it_may_miss():
    whole = whole_jobs(document())
    predicted = whole.predicted

    assert whole.measured is None
    assert pytest.approx(predicted.log) == whole.log
    assert pytest.approx(predicted.variance + whole_job.UNSEEN_SD**2) == whole.standard_error**2


def test_several_candidates_share_the_error_of_the_interval():
    doc = document(metrics=GOOD)
    one, two = whole_jobs(doc), whole_jobs(doc, candidates=2)

    assert two.interval[0] < one.interval[0] < one.interval[1] < two.interval[1]


def test_start_up_that_full_runs_recorded_is_in_the_prediction():
    doc = document(metrics=GOOD)
    without = whole_jobs(copy.deepcopy(doc)).predicted
    for run in full_runs(doc):
        run["seconds"] = run["wall_seconds"] - 30
    known = whole_jobs(doc).predicted

    expected = math.log((60 + 30) / (60 / 1.4 + 3 + 30))
    assert known.log < without.log
    assert pytest.approx(expected, abs=0.02) == known.log


def test_jobs_that_stop_early_are_compared_at_equal_steps():
    """Three of the candidate's jobs stop at half the way: that is no speed-up of the compiler."""
    doc = timed(document(metrics=GOOD), [70.0] * 3, [10 + 25.0] * 3)
    for run in runs(doc):
        run.update(steps=1000, seconds=25.0)
    for run in runs(doc, "baseline"):
        run.update(steps=2000, seconds=60.0)
    as_they_are = whole_jobs(copy.deepcopy(doc)).measured
    doc["quality"]["early_stopping"] = True
    scaled = whole_jobs(doc).measured
    assert as_they_are is None and scaled is not None

    assert pytest.approx(math.log(70 / (10 + 50))) == scaled.log


def test_noise_of_the_wall_clock_is_estimated_and_not_assumed():
    """Run length varies by 25 %: one long job of a good candidate does not end its trial."""
    doc = document(metrics={"baseline": GOOD["baseline"], "compile": GOOD["compile"][:1]})
    doc["quality"].update(history=[2.5] * 8, history_wall_seconds=around(65, 0.25, 8))
    timed(doc, around(65, 0.25), [65 / 1.4 * math.exp(0.5)])

    assert "full_run_disagrees" not in codes(judge(doc))


@given(st.lists(st.lists(st.floats(-1, 1), max_size=5), max_size=3), st.floats(0.01, 0.2))
def test_a_moderated_variance_lies_between_prior_and_data(groups, prior):
    df = sum(max(len(group) - 1, 0) for group in groups)
    pooled = sum(np.var(group) * len(group) for group in groups if group) / df if df else prior**2
    variance, total = moderated(groups, prior)

    assert whole_job.PRIOR_DF + df == total
    assert min(prior**2, pooled) * (1 - 1e-9) - 1e-12 <= variance
    assert variance <= max(prior**2, pooled) * (1 + 1e-9) + 1e-12


def test_the_interval_covers_whole_jobs_whose_blocks_are_off():
    """Blocks miss by N(0, 0.02), nodes by 4 %: a true ratio below it in at most 3 %."""
    rng, below, trials = np.random.default_rng(3), 0, 400
    for _ in range(trials):
        doc = document(metrics={name: values[:2] for name, values in GOOD.items()})
        off = 0.02 * rng.standard_normal()
        for run in runs(doc, stage="speed"):
            base = speed_run(run["block"], 0.03, seed=1)["step_seconds"]
            log = math.log(1.4) + off + 0.01 * rng.standard_normal()
            run["step_seconds"], run["compile_seconds"] = [x / math.exp(log) for x in base], 0.0
        nodes = np.exp(0.04 * rng.standard_normal((2, 2)))
        timed(doc, list(60 * nodes[0]), list(60 / 1.4 * nodes[1]))
        below += whole_jobs(doc).interval[0] > 1.4

    assert below / trials <= 0.03


def test_rare_slow_steps_that_no_compiler_shortens_lower_the_prediction():
    """A data stall of 5 steps in every 100 takes a tenth of both arms' time."""
    doc = document(blocks=3, compile_seconds=0.0)
    before = whole_jobs(copy.deepcopy(doc)).speedup
    for name in ("baseline", "compile"):
        for run in runs(doc, name, "speed"):
            for at in range(30, len(run["step_seconds"]), 100):
                run["step_seconds"][at] += 0.2
    n, stalls = 160 - 20, 2
    lost = 2000 * stalls * 0.2 / n

    assert before == pytest.approx(1.4, rel=0.02)
    assert whole_jobs(doc).speedup == pytest.approx((60 + lost) / (60 / 1.4 + lost), rel=0.03)
