"""One estimate of whole jobs: blocks predict it, full runs measure it, money follows it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.codec import write
from compilegate.domain.decision import ComparedRuns, Decision, SpeedSource, Speedup, Verdict
from compilegate.domain.economics import AtLength
from compilegate.domain.judging import whole_job
from compilegate.domain.judging.design import spent
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.speed import SpeedFinding, SpeedOutcome, block_log_speedups
from compilegate.domain.judging.whole_job import (
    Confirmation,
    Source,
    WholeJob,
    confirm,
    from_steady_steps,
    full_run_hours,
    moderated,
    outside_seconds,
    stop_early,
    trial_usd,
    usd_per_run,
)
from tests.domain.evidence_builder import (
    GOOD,
    among,
    arm,
    codes,
    document,
    full_runs,
    judge,
    runs,
    sample,
    speed_run,
)
from tests.domain.whole_job_builder import confirmation, whole_jobs


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
    more = 1 / speedup(decision)["interval"][0] - 1
    assert f"may cost up to {more:.0%} more than today's" in decision.messages[0]


@pytest.mark.parametrize("candidates", [1, 3])
def test_the_combination_is_that_of_two_sources_by_hand(candidates):
    """Candidates share the error of the interval."""
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
    half = stats.t.ppf(1 - 0.025 / candidates, df) * error
    whole = whole_jobs(doc, candidates)

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
    assert (0.0, 0.08, 0.02) == (whole.weight, whole.wall_prior, whole.least_disagreement)


@pytest.mark.parametrize(("unseen", "least"), [(0.05, 0.05), (0.001, 0.01), (None, 0.02)])
def test_without_blocks_only_full_runs_count_by_what_was_learned(unseen, least):
    doc = document(blocks=0, metrics=GOOD)
    doc["plan"] = {"spreads": {"whole_job": learned(0.03), "unseen": learned(unseen)}}
    whole = whole_jobs(doc)

    assert (None, 1.0, whole.measured.log) == (whole.predicted, whole.weight, whole.log)
    assert (0.03, least, least) == (
        whole.wall_prior, whole.least_disagreement, whole.disagreement,
    )  # fmt: skip


def learned(sd: float | None) -> dict[str, Any] | None:
    spread = {"sd": sd, "source": "workload", "name": "lm", "runs": 20, "workloads": 1}
    return None if sd is None else spread


@pytest.mark.parametrize(
    ("sd", "apart", "variance", "df"),
    [
        (None, False, (3 * 0.03**2 + 2 * 0.103**2) / 5, 5),
        (0.01, False, 0.103**2, 2),
        (0.2, False, (3 * 0.2**2 + 2 * 0.103**2) / 5, 5),
        (0.01, True, (3 * 2 * 0.08**2 + 2 * 0.103**2) / 5, 5),
    ],
    ids=["assumed", "calm before", "wild before", "on other nodes"],
)
def test_blocks_vary_as_assumed_or_as_was_learned_of_nodes_that_arms_share(sd, apart, variance, df):
    doc = demo_production()
    doc["plan"] = {"spreads": {"block": learned(sd)}}
    for run in runs(doc, stage="speed") if apart else ():
        run["node"] = "elsewhere"
    predicted = whole_jobs(doc).predicted

    assert pytest.approx((variance / 3, df)) == (predicted.variance, predicted.df)


def test_the_figures_of_a_source_are_those_of_its_unequal_arms():
    source, half = Source(0.2, 0.04, 4.0, 3, 5), 0.2 * stats.t.ppf(0.975, 4)
    ends = math.exp(0.2 - half), math.exp(0.2 + half)

    assert pytest.approx(0.2 / math.sqrt(1 / 3 + 1 / 5)) == source.spread
    assert source.figures == SpeedSource(
        pytest.approx(math.exp(0.2)), pytest.approx(ends), ComparedRuns(3, 5)
    )
    speed, other = SpeedFinding(SpeedOutcome.PASSED, (0.1, 0.2), 0.04, ""), replace(source, df=9.0)
    whole = WholeJob(0.3, 0.1, 8.0, 0.03, 0.6, 0.02, other, source, target=0.9)
    shown = Speedup(
        math.exp(0.3), whole.interval, 0.95, speed.lower_bound, 2, 5, other.figures,
        source.figures, 0.6, 0.03, 0.9,
    )  # fmt: skip
    assert shown == whole.figures(speed)
    assert replace(shown, full_runs=0, predicted=None, measured=None) == replace(
        whole, predicted=None, measured=None
    ).figures(speed)


def recompiling(longer: float) -> dict[str, Any]:
    """A trial whose candidate recompiles late in each block, and its whole jobs are so long."""
    doc = timed(
        document(metrics=GOOD),
        around(65, 0.05),
        [wall * math.exp(longer) for wall in around(47, 0.05)],
    )
    for run in runs(doc, stage="speed"):
        run["step_seconds"][100] += 2.0
    for name, outside in (("baseline", 20.0), ("compile", 10.0)):
        for run in runs(doc, name):
            run["seconds"] = run["wall_seconds"] - outside
    return doc


def test_full_runs_beyond_doubt_faster_than_the_most_that_blocks_predict_are_implausible():
    doc = recompiling(0.0)
    whole, evidence = whole_jobs(doc), read_evidence(doc)
    blocks, full = whole.predicted, whole.measured
    calm = block_log_speedups(evidence.arms[1], evidence, calm=True, outside=(20.0, 10.0))
    spread = math.sqrt(blocks.variance + 0.02**2 + full.variance)
    most = np.mean(calm) + math.log(1.1) + stats.t.ppf(1 - 0.00135, 5) * spread

    started = block_log_speedups(evidence.arms[1], evidence, outside=(20.0, 10.0))
    assert (5, 7, pytest.approx(np.mean(started))) == (blocks.df, full.df, blocks.log)
    assert [False, True] == [
        whole_jobs(recompiling(full.log - most + more)).implausible for more in (1e-6, -1e-6)
    ]


def test_past_walls_alone_stand_for_a_baseline_that_was_not_timed():
    doc = timed(document(metrics=GOOD), [0.0] * 3, around(47, 0.05))
    doc["quality"]["history_wall_seconds"] = around(66, 0.05, 6)
    variance = (3 * 0.08**2 + (2 + 5) * 0.05**2) / 10

    assert whole_jobs(doc).measured == Source(
        pytest.approx(math.log(66 / 47)),
        pytest.approx(variance * (1 / 3 + 1 / 6 + 0.25)), 10, 6, 3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("early", "steps", "data", "counted"),
    [(True, 2000, "d", 9), (True, 1000, "d", 3), (False, 1900, "other", 9)],
)
def test_past_walls_count_but_beside_runs_that_stop_early(early, steps, data, counted):
    doc = timed(document(metrics=GOOD), around(65, 0.05), around(64, 0.05))
    doc["quality"].update(early_stopping=early, history_wall_seconds=around(65, 0.05, 6))
    for run in runs(doc, "baseline"):
        run["steps"] = 2000
    for run in runs(doc):
        run["steps"], run["fingerprint"]["data_sha256"] = steps, data

    assert counted == whole_jobs(doc).measured.baseline_runs


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


# What runs and trials took and cost, by hand.


@pytest.mark.parametrize(
    ("groups", "known", "variance", "df"),
    [
        ([[0.0, 2.0, 4.0]], 1.0, 4.0, 2), ([[0.0, 2.0, 4.0]], 2.0, 4.0, 5),
        ([[0.0, 2.0, 4.0]], 3.0, 7.0, 5), ([[1.0], []], 3.0, 9.0, 3),
    ],
)  # fmt: skip
def test_runs_that_vary_more_than_was_learned_count_alone(groups, known, variance, df):
    assert (variance, df) == moderated(groups, known, learned=True)


def test_a_run_of_another_length_gains_by_its_steady_steps_less_what_it_starts_with():
    logs = [0.2, 0.3, 0.4, 0.5]
    variance = (3 * 0.03**2 + 0.05) / 6
    half = stats.t.ppf(0.975, 6) * math.sqrt(variance / 4)
    low, middle, high = (math.exp(0.35 + shift) for shift in (-half, 0, half))

    assert from_steady_steps(3600.0, logs, 0.03, 30.0) == AtLength(
        3600.0,
        pytest.approx(3600 / (30 + 3600 / middle)),
        pytest.approx((3600 / (30 + 3600 / low), 3600 / (30 + 3600 / high))),
        pytest.approx(30 * middle / (middle - 1)),
    )


@pytest.mark.parametrize(
    ("theirs", "ours", "planned", "early"),
    [
        ([1000, 1000], [500], 500, False), ([1000], [510], 500, False),
        ([1000], [511], 500, True), ([1000], [489], 500, True), ([1000, 970], [500], 500, True),
        ([1000], [400], None, False), ([None], [None], 500, False),
    ],
)  # fmt: skip
def test_runs_stop_early_that_did_other_shares_of_what_their_arms_plan(
    theirs, ours, planned, early
):
    doc = document(blocks=0, metrics={"baseline": [2.5] * len(theirs), "compile": [2.5]})
    doc["full_run_steps"] = None
    arm(doc, "baseline")["full_run_steps"], arm(doc)["full_run_steps"] = 1000, planned
    for name, steps in (("baseline", theirs), ("compile", ours)):
        for run, did in zip(runs(doc, name), steps, strict=True):
            run["steps"] = did

    assert early is stop_early(*read_evidence(doc).arms)


def hours(doc: dict[str, Any]) -> list[float | None]:
    evidence = read_evidence(doc)
    return [of(one, evidence) for one in evidence.arms for of in (full_run_hours, usd_per_run)]


def test_hours_and_price_of_a_run_are_measured_on_whole_jobs_before_all_else():
    doc = timed(document(metrics=GOOD), [3600.0, 7200.0, 5400.0], [1800.0, 3600.0, 2700.0])
    doc["quality"]["history_wall_seconds"], doc["usd_per_hour"] = [7200.0, 14400.0], None
    arm(doc)["usd_per_hour"] = 2.0
    blocks = read_evidence(doc).segments["compile"].values()
    seconds = np.mean([one.full_run_seconds(2000) for one in blocks if one])
    assert [1.5, None, 0.75, 1.5] == hours(doc)

    for run in full_runs(doc):
        run["wall_seconds"] = None
    arm(doc, "baseline")["usd_per_hour"] = 4.0
    assert [3.0, 12.0, *(pytest.approx(x * seconds / 3600) for x in (1, 2))] == hours(doc)

    for one in doc["arms"]:
        one["runs"] = []
    assert [3.0, 12.0, None, None] == hours(doc)


def test_what_a_run_does_outside_its_steps_is_its_arms_own_else_the_other_arms():
    doc = timed(document(metrics=GOOD), [60.0, 50.0, 0.0], [40.0] * 3)
    for run, seconds in zip(runs(doc, "baseline"), (54.0, 51.0, 9.0), strict=True):
        run["seconds"] = seconds
    theirs, ours = read_evidence(doc).arms
    silent = read_evidence(document(metrics=GOOD)).arms

    assert [3.0, 3.0, 0.0] == [
        outside_seconds(*both) for both in ((theirs, ours), (ours, theirs), silent)
    ]


def of_production(doc: dict[str, Any]) -> None:
    for run, mode in zip(runs(doc), ("canary", "production", "shadow"), strict=True):
        run["mode"] = mode


COSTS: dict[str, tuple[Any, float | None]] = {
    "all that was timed": (lambda doc: None, 6 * 2.0 + 9 * 3.0),
    "the bill": (lambda doc: doc.update(plan={"spent_usd": 12.5}), 12.5),
    "a bill of nothing": (lambda doc: doc.update(plan={"spent_usd": 0.0}), 0.0),
    "without what production made": (of_production, 6 * 2.0 + 5 * 3.0),
    "a run that finished untimed": (lambda doc: runs(doc)[1].update(wall_seconds=None), None),
    "a crash of unknown length": (
        lambda doc: runs(doc)[1].update(finished=False, wall_seconds=None), 6 * 2.0 + 6 * 3.0),
    "an arm without a price": (
        lambda doc: arm(doc, "baseline").update(usd_per_hour=None), None),
}  # fmt: skip


@pytest.mark.parametrize("what", COSTS)
def test_a_trial_costs_its_segments_and_extra_runs_at_the_price_of_each_arm(what):
    """Whole jobs of 1, 2, 3 and of 1, 3, 3 hours, segments of none and of an hour, twice."""
    doc = timed(document(metrics=GOOD, blocks=2), *(
        [3600.0 * n for n in made] for made in ((1, 2, 3), (1, 3, 3))
    ))  # fmt: skip
    doc["usd_per_hour"], arm(doc, "baseline")["usd_per_hour"] = None, 2.0
    arm(doc)["usd_per_hour"] = 3.0
    for name, seconds in (("baseline", []), ("compile", [900.0, 2700.0])):
        for run in runs(doc, name, "speed"):
            run["step_seconds"] = seconds
    change, expected = COSTS[what]
    change(doc)

    assert expected == trial_usd(read_evidence(doc))


# Whether whole jobs confirm a candidate: with 10 degrees of freedom t is 1.81 at 0.05, 2.23 at
# 0.025, and 3.96 beyond doubt.

SE = 0.01


@pytest.mark.parametrize(
    ("terms", "log", "agreement", "disproved"),
    [
        ((1.0, 1.1, 1), math.log(1.1) + 2.0 * SE, "confirmed", False),
        ((1.0, 1.1, 2), math.log(1.1) + 2.0 * SE, "unproven", False),
        ((1.0, 1.1, 2), math.log(1.1) + 2.4 * SE, "confirmed", False),
        ((1.0, 1.1, 1), math.log(1.1) + 1.7 * SE, "unproven", False),
        ((1.0, 1.1, 1), math.log(1.1), "unproven", False),
        ((1.0, 1.1, 1), math.log(1.1) - 0.1 * SE, "below", False),
        ((1.0, 1.1, 1), math.log(1.1) - 3.9 * SE, "below", False),
        ((1.0, 1.1, 1), math.log(1.1) - 4.0 * SE, "below", True),
        ((1.0, 1.0, 1), 2.0 * SE, "may_lose", False),
        ((1.0, 1.0, 1), 2.3 * SE, "confirmed", False),
        ((1.25, 1.1, 1), math.log(1.1 * 1.25) + 2.0 * SE, "confirmed", False),
        ((1.25, 1.1, 1), math.log(1.1 * 1.25) - 0.1 * SE, "below", False),
        # A cheaper cluster may be slower than the bar, and not beyond doubt slower than today.
        ((0.8, 1.1, 1), -3.9 * SE, "confirmed", False),
        ((0.8, 1.1, 1), -4.0 * SE, "below", True),
    ],
)
def test_whole_jobs_confirm_what_is_proven_above_the_bar(terms, log, agreement, disproved):
    """``terms`` are the candidate's price, the bar and how many candidates share the error."""
    price, least, candidates = terms
    doc = document(metrics=GOOD, policy={"min_proven_speedup": least})
    arm(doc)["usd_per_hour"] = price * doc["usd_per_hour"]
    evidence = among(read_evidence(doc), candidates)
    whole = WholeJob(log, SE, 10, 0.0, 1.0, 0.05, None, Source(log, SE**2, 10, 3, 3))
    bound = math.exp(log - stats.t.ppf(1 - 0.05 / candidates, 10) * SE)
    expected = Confirmation(
        agreement, disproved, pytest.approx(least * price), pytest.approx(bound), 1.0
    )

    assert expected == confirm(evidence.candidates[0], evidence, whole)


def test_nothing_is_confirmed_of_what_was_not_measured_or_cannot_be():
    doc = document(metrics=GOOD)
    evidence, whole = read_evidence(doc), whole_jobs(doc)
    runs(doc)[0]["wall_seconds"] = None
    untimed = read_evidence(doc)
    unmeasured = Confirmation("unmeasured", False, pytest.approx(1.1), None)
    too_fast = replace(whole, implausible=True)

    assert "confirmed" == confirm(evidence.arms[1], evidence, whole).agreement
    assert "implausible" == confirm(evidence.arms[1], evidence, too_fast).agreement
    for seen, one in (
        (evidence, None),
        (evidence, replace(whole, measured=None)),
        (untimed, whole),
    ):
        assert unmeasured == confirm(seen.arms[1], seen, one)


def test_by_a_learned_spread_nothing_is_proven_where_no_look_is_left():
    doc = {**document(metrics=GOOD), "plan": {"spreads": {"whole_job": learned(0.03)}}}
    shares = [confirmation({**doc, "runs_remaining": left}).share for left in (1, 10_000)]

    assert [0.0, spent(3, 12, 1.0)] == shares
