"""What a plan may cost: low, expected and high of every arm and of the whole."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.formats import significant
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.quality import ENOUGH_HISTORY
from compilegate.domain.planning.arms import ArmPlan, SpeedJob
from compilegate.domain.planning.estimate import (
    STARTUP_HOURS,
    Estimate,
    Need,
    Proof,
    RoundLayout,
    block_usd,
    estimate,
    job_hours,
    layouts,
    needs,
    plan_proof,
)
from compilegate.domain.workload.quality import Metric
from tests.domain.workload_builder import COMPILE, SOUND, change

BASE = ArmPlan(
    name="baseline", compiler="none", image="i", instance_type="ml.g5.xlarge", instance_count=1,
    devices=1, usd_per_hour=10.0, precision="bf16", batch_size=32, learning_rate=1e-3,
    distribution="none", overrides={}, role="baseline",
)  # fmt: skip
COMPILED = replace(
    BASE, name="compile", compiler="torch_compile", role="candidate", compile_seconds=360.0
)
MANAGED = replace(
    BASE, name="managed", compiler="sagemaker_training_compiler", image="m", role="candidate"
)
TWO = replace(COMPILED, name="second")
NATIVE = replace(BASE, name="managed-native", image="n", role="control")
PROOF = Proof(runs=3, n_max=12, history=0, basis="assumed")
SEGMENT = COLD = 0.1


def cost(*arms: ArmPlan, proof: Proof = PROOF, hours: float = 6.0, cap: float = 1e6) -> Estimate:
    return estimate(arms, run_hours=hours, proof=proof, cap_usd=cap, runs_per_week=3.0)


def test_arms_on_one_node_share_a_jobs_start_and_compile_once():
    """Expected: one block, then two more, in two jobs; then three full runs of each arm."""
    trial = cost(BASE, COMPILED)

    speed = 2 * STARTUP_HOURS + 3 * 2 * SEGMENT + COLD
    assert pytest.approx(10 * speed) == trial.speed_usd
    assert pytest.approx(10 * 6 * 6) == trial.quality_usd
    assert pytest.approx(speed + 2 * 6) == trial.hours
    two_blocks = SpeedJob((BASE, COMPILED), 0, 0, 2, apart=False)
    assert pytest.approx(STARTUP_HOURS + 4 * SEGMENT + COLD) == job_hours(two_blocks, 6.0)


def test_segments_of_a_short_run_are_no_longer_than_the_run():
    trial = cost(BASE, replace(COMPILED, compile_seconds=36.0), hours=0.01)

    assert pytest.approx(10 * (2 * STARTUP_HOURS + 7 * 0.01)) == trial.speed_usd


def test_arms_on_other_nodes_pay_for_a_job_of_their_own_for_every_block():
    """The managed compiler keeps no cache, so it compiles in each of the three."""
    trial = cost(BASE, replace(MANAGED, instance_count=200))

    baseline, managed = 3 * (STARTUP_HOURS + SEGMENT), 3 * (STARTUP_HOURS + SEGMENT + COLD)
    assert pytest.approx(10 * (baseline + managed)) == trial.speed_usd
    # The blocks of a round run side by side: one block, then two.
    assert pytest.approx(2 * (STARTUP_HOURS + SEGMENT + COLD) + 2 * 6) == trial.hours


def test_a_control_takes_three_blocks_and_no_full_run():
    trial = cost(BASE, MANAGED, NATIVE).arms[2]

    assert pytest.approx(3 * (STARTUP_HOURS + SEGMENT)) == trial.hours.expected == trial.hours.high


def test_the_low_end_is_one_block_and_nothing_else():
    trial = cost(BASE, COMPILED)

    assert pytest.approx(STARTUP_HOURS + 2 * SEGMENT + COLD) == trial.low_hours
    assert pytest.approx(10 * trial.low_hours) == trial.low_usd


def test_a_dearer_candidate_gets_full_runs_only_where_they_cost_no_more_than_today():
    dearer = replace(COMPILED, name="dear", instance_type="ml.p4d.24xlarge", usd_per_hour=50.0)
    cheaper = replace(COMPILED, name="cheap", instance_type="ml.g6.12xlarge", usd_per_hour=4.0)

    def full(arm: ArmPlan) -> float:
        blocks = 3 * (STARTUP_HOURS + SEGMENT) + COLD
        return cost(BASE, arm).arms[1].usd.expected - arm.usd_per_hour * blocks

    assert pytest.approx(3 * 6 * 10) == full(dearer)
    assert pytest.approx(3 * 6 * 4) == full(cheaper)


def test_the_baseline_has_as_many_runs_as_a_candidate_and_what_is_on_beside_each():
    arms = (BASE, replace(COMPILED, name="on", role="on"), COMPILED, TWO, NATIVE)
    some, none = (cost(*arms, proof=replace(PROOF, runs=runs)).arms for runs in (3, 0))

    # To the second candidate all of the baseline's but one are history.
    runs = [(a.hours.expected - b.hours.expected) / 6 for a, b in zip(some, none, strict=True)]
    assert pytest.approx([3 + 2, 3 + 3, 3, 3, 0]) == runs


@pytest.mark.parametrize("history", [0, 1000])
def test_baseline_runs_are_as_many_whatever_the_history(history):
    proof = replace(PROOF, history=history, runs=2)

    assert [2, 3, 12] == [proof.baseline_runs(n) for n in (2, 3, 12)]
    assert [1, 2, 11] == [proof.baseline_runs(n, later=True) for n in (2, 3, 12)]


def test_a_block_costs_what_the_whole_gate_costs_over_its_blocks():
    whole = cost(BASE, COMPILED, proof=replace(PROOF, n_max=2, runs=2))

    hours = 4 * STARTUP_HOURS + 12 * SEGMENT + COLD
    assert pytest.approx(10 * hours) == 6 * block_usd([BASE, COMPILED], 6.0)
    assert pytest.approx(whole.high_usd - 10 * 6 * 4) == 6 * block_usd([BASE, COMPILED], 6.0)


@given(
    chosen=st.lists(st.sampled_from([COMPILED, MANAGED, NATIVE]), min_size=1, max_size=3),
    prices=st.lists(st.floats(0.1, 200), min_size=4, max_size=4),
    hours=st.floats(0.001, 100),
    runs=st.sampled_from([2, 3, 5, 8, 12]),
    history=st.integers(0, 40),
)
def test_expected_lies_between_low_and_high_and_nothing_exceeds_the_cap(
    chosen, prices, hours, runs, history
):
    arms = [
        replace(arm, name=f"{arm.name}-{n}", usd_per_hour=usd, instance_count=n + 1)
        for n, (arm, usd) in enumerate(zip(chosen, prices[1:], strict=False))
    ]
    proof = Proof(runs=runs, n_max=12, history=history, basis="")
    free = estimate(
        [BASE, *arms], run_hours=hours, proof=proof, cap_usd=math.inf, runs_per_week=3.0
    )
    cap = free.usd * 1.1

    trial = estimate([BASE, *arms], run_hours=hours, proof=proof, cap_usd=cap, runs_per_week=3.0)

    assert trial.low_usd <= trial.usd <= trial.high_usd <= cap * (1 + 1e-9)
    assert trial.low_hours <= trial.hours <= trial.high_hours
    assert math.isclose(trial.usd, trial.speed_usd + trial.quality_usd)
    assert math.isclose(trial.usd, math.fsum(one.usd.expected for one in trial.arms))
    for one in trial.arms:
        assert one.usd.low <= one.usd.expected <= one.usd.high <= cap * (1 + 1e-9)
        assert one.hours.low <= one.hours.expected <= one.hours.high


def proof_of(**changes: Any) -> Proof:
    proof = plan_proof(change(SOUND, **changes), candidates=1)
    assert proof is not None
    return proof


def test_a_long_history_gives_the_runs_that_the_judges_power_table_gives():
    """A spread of 0.4 margins over five runs takes 5 runs, one of 0.2 takes 2 (K = 1)."""
    history = (0.910, 0.911, 0.912, 0.913, 0.914)
    deviation = 0.0015811388

    assert 5 == proof_of(quality__history=history, quality__margin=deviation / 0.4).runs
    assert 2 == proof_of(quality__history=history, quality__margin=deviation / 0.2).runs


def test_of_several_metrics_the_one_that_takes_most_runs_decides():
    history = (0.910, 0.911, 0.912, 0.913, 0.914)

    def guarded(relative: float, past: tuple[float, ...] = history, first: float = 0.2) -> Proof:
        metric = Metric("top5", "maximize", stdev(past) / relative, past)
        own = {"quality__history": history, "quality__margin": stdev(history) / first}
        return proof_of(**own, quality__guardrails=(metric,))

    assert [2, 5] == [guarded(relative).runs for relative in (0.1, 0.4)]
    # A longer history of its own takes fewer; how many the baseline needs is the first metric's.
    longer = guarded(0.66, history * 6)
    assert (12, 8, 5) == (guarded(0.66).runs, longer.runs, longer.history)
    for first in (0.2, 0.8):  # the second takes all runs itself
        assert guarded(50.0, first=first).refused.message.startswith("top5: ")


def test_of_a_history_without_differences_three_runs_are_assumed():
    proof = proof_of(quality__history=(0.9,) * ENOUGH_HISTORY)
    most = SOUND.quality.margin / Design(ENOUGH_HISTORY, 12, error=0.05).provable_margin(3)

    few = proof_of(quality__history=(0.90, 0.91, 0.92, 0.93), quality__margin=0.5)
    assert 3 == proof.runs == few.runs
    assert proof.basis.endswith(f"enough where it differs by {significant(most, 2)} or less")


@given(st.integers(1, 4))
def test_more_candidates_never_need_fewer_runs(candidates):
    """They share alpha."""
    one, several = (plan_proof(SOUND, candidates=k) for k in (1, candidates))

    assert one.runs <= several.runs


def test_two_runs_left_are_too_few():
    rare = change(SOUND, schedule__runs_per_week=0.05, candidates=(COMPILE,))

    assert plan_proof(rare, candidates=1) is None


@pytest.mark.parametrize(
    ("mode", "history", "runs", "rounds", "by_production"),
    [
        # Runs of the candidate and of the baseline, to each look of 2, 3, 5, 8 and 12.
        ("shadow", 0, 8, [(2, 2), (1, 1), (2, 2), (3, 3)], 0),
        # A single run beside enough history may already end it.
        ("shadow", ENOUGH_HISTORY, 3, [(1, 1), (1, 1), (1, 1)], 0),
        # Only the first ones are extra; the rest take turns with the baseline in production.
        ("hybrid", 0, 8, [(2, 2)], 6 + 6),
        ("hybrid", ENOUGH_HISTORY - 1, 8, [(2, 2)], 6 + 6),
        ("hybrid", ENOUGH_HISTORY, 8, [(1, 1)], 7 + 7),
        ("hybrid", 0, 1, [(1, 1)], 0),
        ("canary", 0, 8, [], 8 + 8),
    ],
)
def test_full_runs_come_round_by_round_or_from_production(
    mode, history, runs, *, rounds, by_production
):
    proof = replace(PROOF, mode=mode, history=history)

    assert (rounds, by_production) == ([*proof.rounds(runs)], proof.production_runs(runs))
    # Beside a later candidate the last baseline run of the one before is not history.
    later = [(more, base - (index == 0)) for index, (more, base) in enumerate(rounds)]
    assert later == [*proof.rounds(runs, later=True)]


THREE_NODES = replace(MANAGED, instance_count=3)
KIND, OTHER = BASE.instance_type, "ml.p4d.24xlarge"
ELSEWHERE = replace(THREE_NODES, instance_type=OTHER)


def test_a_trial_takes_longer_where_the_quota_holds_fewer_jobs_or_production_makes_the_runs():
    arms, of_three = (BASE, COMPILED, TWO), {KIND: 3}.get
    how = {"run_hours": 6.0, "cap_usd": 1e6, "runs_per_week": 3.0}
    laid_out = estimate(arms, proof=PROOF, quota=of_three, **how)
    canary = estimate(arms, proof=replace(PROOF, mode="canary"), **how)
    free = cost(*arms)

    assert free.hours == free.hours_side_by_side == laid_out.hours_side_by_side
    # A round of two jobs of each takes two turns, the later candidate's of two and one a single.
    assert pytest.approx(6) == laid_out.hours - free.hours
    assert (free.usd, free.low_hours) == (laid_out.usd, laid_out.low_hours)
    # Of the baseline's machine one at a time: full runs in four turns, second blocks one by one.
    apart = [
        estimate((BASE, ELSEWHERE), proof=PROOF, quota={KIND: most, OTHER: 64}.get, **how).hours
        for most in (1, 2)
    ]
    two_blocks = 2 * (2 * (STARTUP_HOURS + SEGMENT) + COLD)
    alone = STARTUP_HOURS + SEGMENT + COLD
    assert pytest.approx(3 * 6 + two_blocks - alone) == apart[0] - apart[1]
    # Six runs a candidate, three a week; shadow has two rounds of six hours each.
    assert pytest.approx(2 * 6 / 3 * 168 - 2 * 2 * 6) == canary.hours - free.hours


@pytest.mark.parametrize(
    ("arms", "speed", "full", "required"),
    [
        # Before the last look four runs of each, of which the quota holds four.
        ((BASE, COMPILED), (1, 1), (8, 4), [(KIND, 1, 4, 4)]),
        # Two blocks of a job of four instances and one of one, and of a control.
        ((BASE, THREE_NODES, NATIVE), (6, 1), (8, 1), [(KIND, 3, 10, 4)]),
        ((BASE, ELSEWHERE), (4, 4), (8, 8), [(KIND, 1, 2, 4), (OTHER, 3, 6, 64)]),
        # The candidate whose jobs take more turns.
        ((BASE, ELSEWHERE, COMPILED), (4, 4), (8, 4), [(KIND, 1, 4, 4), (OTHER, 3, 6, 64)]),
    ],
)
def test_rounds_are_laid_out_within_what_the_quotas_hold(arms, *, speed, full, required):
    quota = {KIND: 4, OTHER: 64}.get

    assert (RoundLayout("speed", *speed), RoundLayout("quality", *full)) == layouts(
        arms, PROOF, quota
    )
    assert [4, 1] == [RoundLayout("speed", 7, most).waves for most in (2, 7)]
    assert tuple(Need(*one, spot=True) for one in required) == needs(
        arms, PROOF, spot=True, quota=quota
    )
