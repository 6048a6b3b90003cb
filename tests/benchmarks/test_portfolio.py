import numpy as np
import pytest

from benchmarks.decision.portfolio import MARGIN, draw
from benchmarks.decision.truth import correlated, segment


def workloads(portfolio, count=200, **options):
    return [draw(np.random.default_rng([7, i]), portfolio, **options) for i in range(count)]


def test_every_arm_of_the_speed_boundary_is_just_too_slow_as_a_whole_job():
    for workload in workloads("boundary_speed"):
        speedups = [workload.speedup(arm) for arm in workload.candidates]
        assert pytest.approx([1.0999, 1.0999], rel=1e-3) == speedups
        assert all(workload.is_bad(arm) for arm in workload.candidates)


def test_every_arm_of_the_quality_boundary_is_fast_and_loses_the_margin():
    for workload in workloads("boundary_quality"):
        for arm in workload.candidates:
            assert arm.loss == MARGIN
            assert workload.speedup(arm) > 1.29
            assert workload.is_bad(arm)


def test_the_mixed_portfolio_is_as_described():
    fleet = workloads("mixed", 3000)
    ratios = np.array([workload.spread / workload.margin for workload in fleet])
    assert 0.2 <= ratios.min() and ratios.max() <= 2.0
    assert pytest.approx(np.sqrt(0.2 * 2.0), rel=0.05) == np.median(ratios)
    hours = np.array([workload.hours(workload.arms[0]) for workload in fleet])
    assert pytest.approx(10, rel=0.1) == np.median(hours)
    second = np.array([workload.arms[2].loss > 0 for workload in fleet])
    assert pytest.approx(0.50, abs=0.03) == second.mean()
    steady = np.array([workload.arms[1].steady_ratio for workload in fleet])
    assert pytest.approx(0.30, abs=0.03) == (steady < 1.05).mean()
    assert {0, 3, 5, 10, 20} == {len(workload.history) for workload in fleet}


def test_neighbouring_steps_correlate_as_configured():
    values = correlated(np.random.default_rng(1), 200_000, 0.8, 0.05)
    assert pytest.approx(0.05, rel=0.05) == values.std()
    assert pytest.approx(0.8, abs=0.02) == np.corrcoef(values[1:], values[:-1])[0, 1]


def test_a_segment_compiles_in_its_first_steps_and_then_keeps_its_pace():
    workload = draw(np.random.default_rng(5), "all_good")
    arm = workload.candidates[0]
    rng = np.random.default_rng(1)
    runs = [segment(rng, workload, arm, steps=320, node=1.0) for _ in range(200)]
    assert all(len(steps) == 320 for steps, _ in runs)
    compiled = np.mean([compiling for _, compiling in runs])
    early = arm.compile_seconds + arm.early_recompiles * arm.recompile_seconds
    assert compiled >= 0.98 * early
    steady = np.mean([steps[100:] for steps, _ in runs])
    late = max(0.0, compiled - early) / 220
    assert pytest.approx(workload.steps.mean_seconds(arm), rel=0.02, abs=late) == steady
