import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.decision.driver import REFRESH_EVERY, Driver
from benchmarks.decision.play import policy
from benchmarks.decision.portfolio import draw
from benchmarks.decision.screening import Screening
from benchmarks.decision.truth import BASELINE
from benchmarks.decision.world import World, best_hours
from compilegate.domain import followers
from compilegate.domain.decision import (
    Decision,
    ProbationStep,
    QualityStep,
    RequestedArm,
    RequestedFullRun,
    SpeedStep,
    Verdict,
)
from compilegate.domain.judging.judge import judge
from compilegate.domain.reasons import Reason

PAIR = (RequestedFullRun("compile-1", 17), RequestedFullRun(BASELINE, 17))
SHADOW_PAIR = QualityStep("shadow", PAIR, usd=None, why="")
CANARY_PAIR = replace(SHADOW_PAIR, mode="canary")


def decision(verdict, step=None, candidate="compile-1"):
    return Decision(
        "simulated",
        "id",
        "0",
        "speed",
        verdict,
        candidate,
        (Reason("code", "why"),),
        next=step,
    )


def probation_step(*arms, confirm):
    return ProbationStep(tuple(RequestedArm(arm, confirm) for arm in arms), why="")


def speed_step(block, arms, *, blocks=1, steps=64):
    return SpeedStep(block, blocks, steps, arms, usd=None, why="")


def world(portfolio="all_good", seed=3):
    return World(draw(np.random.default_rng(seed), portfolio), np.random.default_rng(seed))


def driver(*, decide=judge, screening=None, **options):
    return Driver(world(**options), policy("hybrid"), screening or Screening(), decide=decide)


def runs(driving, name):
    return driving.evidence.arm(name).runs


def test_a_speed_step_is_answered_by_every_arm_on_one_node_and_paid_for():
    driving = driver()
    driving.answer(speed_step(2, (BASELINE, "compile-2")))
    base, candidate = runs(driving, BASELINE)[0], runs(driving, "compile-2")[0]
    assert () == runs(driving, "compile-1")
    assert (2, 2) == (base.block, candidate.block)
    assert base.node == candidate.node
    assert (64, 64) == (len(base.step_seconds), len(candidate.step_seconds))
    seconds = math.fsum(base.step_seconds + candidate.step_seconds)
    assert pytest.approx(seconds / 3600) == driving.world.account.probe_hours
    assert 0 == driving.world.account.periods


def test_a_shadow_step_is_paid_for_whatever_the_arm_and_production_runs_beside_for_nothing():
    driving = driver()
    driving.answer(SHADOW_PAIR)
    base, candidate = runs(driving, BASELINE), runs(driving, "compile-1")
    assert ["production", "shadow"] == [run.mode for run in base]
    assert [0, 2, 1] == [run.order for run in base + candidate]
    charged = base[1].wall_seconds + candidate[0].wall_seconds
    assert pytest.approx(charged / 3600) == driving.world.account.shadow_hours
    assert 1 == driving.world.account.periods


def test_a_canary_step_costs_time_and_exposure_and_no_gpu_hours():
    driving = driver(portfolio="boundary_quality")
    driving.answer(CANARY_PAIR)
    assert ["canary"] == [run.mode for run in runs(driving, "compile-1")]
    account = driving.world.account
    assert (0, 2, 1) == (account.dedicated_hours, account.periods, account.bad_runs)


def test_probation_makes_the_next_run_alone_and_the_judge_is_asked_again():
    driving = driver(decide=lambda _: decision(Verdict.PERMANENT))
    driving.answer(SHADOW_PAIR)
    driving.probation("compile-1")
    driving.answer(probation_step("compile-1", BASELINE, confirm=False))
    driving.answer(probation_step(BASELINE, "compile-1", confirm=True))
    watched, confirmed = (driving.evidence.arm(name).probation for name in ("compile-1", BASELINE))
    assert [(3, False)] == [(run.order, run.confirm) for run in watched]
    assert [(4, True)] == [(run.order, run.confirm) for run in confirmed]
    assert 2 == driving.watched
    assert 3 == driving.world.account.periods


def test_every_sixth_run_that_nothing_was_asked_of_is_the_baselines():
    driving = driver(decide=lambda _: decision(Verdict.PERMANENT))
    driving.probation("compile-1")
    for _ in range(12):
        driving.answer(probation_step("compile-1", confirm=False))
    orders = [run.order for run in driving.evidence.baseline.probation]
    assert [REFRESH_EVERY - 1, 2 * REFRESH_EVERY - 1] == orders
    assert followers.REFRESH_EVERY == REFRESH_EVERY


def test_the_shipped_judge_decides_and_finds_a_clear_win():
    verdicts = [Driver(world(seed=seed), policy("hybrid")).trial().verdict for seed in range(8)]
    assert "promote" in verdicts
    assert {"promote", "stay_off", "inconclusive", "horizon"} >= set(verdicts)


def test_production_to_the_horizon_earns_what_the_oracle_earns():
    simulated = world()
    best = min(simulated.workload.candidates, key=simulated.workload.hours)
    simulated.run_out(best.name)
    assert simulated.workload.runs_left == simulated.account.periods
    assert (
        pytest.approx(best_hours(simulated.workload, lambda _: True))
        == simulated.account.saved_hours
    )


def test_arms_of_one_seed_correlate_as_configured():
    simulated = world("mixed")
    arm = simulated.workload.candidates[0]
    pairs = [
        (simulated.shadow_run(BASELINE, seed).metric, simulated.shadow_run(arm.name, seed).metric)
        for seed in range(4000)
    ]
    ours, theirs = np.array(pairs).T
    assert pytest.approx(arm.correlation, abs=0.05) == np.corrcoef(ours, theirs)[0, 1]
    assert pytest.approx(arm.loss, abs=0.1) == ours.mean() - theirs.mean()
