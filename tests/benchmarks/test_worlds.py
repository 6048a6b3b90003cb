"""Every parameter of Stress does what it says: moments of what the worlds make."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.decision.noise import SHAPES, moved_before, nights, noise, share_right
from benchmarks.decision.portfolio import draw
from benchmarks.decision.truth import BASELINE, STRESSES, Stress, length_factor, node_factor
from benchmarks.decision.world import World


def rng(seed=1):
    return np.random.default_rng(seed)


def world(stress, seed=3, portfolio="boundary_quality", **changed):
    drawn = replace(draw(rng(seed), portfolio), stress=stress, **changed)
    return World(drawn, rng(seed + 1000))


def in_turns(simulated, pairs):
    """Metrics of production runs in turns, baseline first, as deviations in sd."""
    names = [BASELINE, "compile-1"] * pairs
    metrics = [simulated.production_run(name, seed).metric for seed, name in enumerate(names)]
    job = simulated.workload
    return (np.array(metrics) - job.level) / job.spread


def quiet(**changed):
    """A world without chance of its own, so that movement alone is seen."""
    return Stress(nights=1.0, night_memory=0.0, **changed)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_mean_zero_and_unit_variance(shape):
    values = noise(rng(), 400_000, Stress(noise=shape))
    assert pytest.approx(0, abs=0.01) == values.mean()
    assert pytest.approx(1, abs=0.06 if shape == "t3" else 0.01) == values.std()


def test_heavy_tails_are_heavier_with_fewer_degrees_of_freedom():
    beyond = [
        (abs(noise(rng(), 400_000, Stress(noise=shape))) > 5).mean()
        for shape in ("normal", "t5", "t3")
    ]
    assert beyond[0] < beyond[1] < beyond[2]


def test_one_bimodal_run_in_five_ends_in_the_worse_basin():
    values = noise(rng(), 200_000, Stress(noise="bimodal"))
    worse = values < -0.65
    assert pytest.approx(0.2, abs=0.01) == worse.mean()
    apart = values[~worse].mean() - values[worse].mean()
    assert pytest.approx(2.165, abs=0.1) == apart
    between = apart**2 * 0.2 * 0.8
    assert pytest.approx(0.75, abs=0.06) == between


def test_a_binomial_metric_has_the_spread_of_its_examples_and_widens_with_a_loss():
    chance = rng()
    values = [share_right(chance, 99.0, level=99.0, spread=0.3) for _ in range(20_000)]
    assert pytest.approx(99.0, abs=0.01) == np.mean(values)
    assert pytest.approx(0.3, rel=0.03) == np.std(values)
    lost = [share_right(chance, 98.0, level=99.0, spread=0.3) for _ in range(20_000)]
    expected = 0.3 * np.sqrt(0.98 * 0.02 / (0.99 * 0.01))
    assert pytest.approx(expected, rel=0.03) == np.std(lost)


def test_a_binomial_workload_counts_right_answers_in_every_run():
    simulated = world(STRESSES["binomial"], level=98.0, spread=0.3)
    base = [simulated.shadow_run(BASELINE, seed).metric for seed in range(4000)]
    assert pytest.approx(98.0, abs=0.03) == np.mean(base)
    assert pytest.approx(0.3, rel=0.06) == np.std(base)
    steps = np.unique(np.round(np.diff(sorted(set(base))), 9))
    assert np.allclose(steps / steps[0], np.round(steps / steps[0]))


def test_a_trend_moves_both_arms_with_every_run():
    runs = np.mean([in_turns(world(Stress(trend=0.05), seed=s), 20) for s in range(300)], axis=0)
    for arm in (runs[::2], runs[1::2]):
        slope = np.polyfit(np.arange(0, 40, 2), arm, 1)[0]
        assert pytest.approx(0.05, abs=0.006) == slope


def test_a_walk_adds_its_variance_every_night():
    moves = np.array([in_turns(world(Stress(walk=0.15), seed=s), 20) for s in range(1500)])
    base = moves[:, ::2]
    later = np.var(base[:, -1]) - np.var(base[:, 0])
    assert pytest.approx(38 * 0.15**2, rel=0.25) == later


def test_shadow_runs_of_one_period_share_their_night():
    simulated = world(quiet())
    one, other = (simulated.shadow_run(BASELINE, seed).metric for seed in (1, 2))
    assert one == other
    simulated.production_run(BASELINE, 3)
    assert one != simulated.shadow_run(BASELINE, 4).metric


def test_nights_remember_the_one_before():
    values = nights(rng(), 200_000, Stress(night_memory=0.8))
    assert pytest.approx(1, rel=0.02) == values.std()
    assert pytest.approx(0.8, abs=0.01) == np.corrcoef(values[1:], values[:-1])[0, 1]


def test_a_night_gives_its_share_of_the_variance_to_both_arms():
    pairs = [
        in_turns(world(Stress(nights=0.5), seed=s, portfolio="all_good"), 1) for s in range(4000)
    ]
    base, candidate = np.array(pairs).T
    assert pytest.approx(1, rel=0.05) == base.std()
    correlated = 0.5 * 0.8  # the next night
    assert pytest.approx(correlated, abs=0.05) == np.corrcoef(base, candidate)[0, 1]


def test_history_moves_towards_the_begin_of_the_trial():
    moved = moved_before(rng(), 10, Stress(trend=0.05, moved_before=True))
    assert pytest.approx(-0.5) == moved[0]
    assert pytest.approx(-0.05) == moved[-1]
    walks = np.array(
        [moved_before(rng(s), 10, Stress(walk=0.15, moved_before=True)) for s in range(4000)]
    )
    assert pytest.approx(0.15, rel=0.05) == walks[:, -1].std()
    assert pytest.approx(0.15 * np.sqrt(10), rel=0.05) == walks[:, 0].std()
    assert not moved_before(rng(), 10, Stress(trend=0.05, walk=0.15)).any()


def test_history_is_off_by_the_fixed_offset():
    drawn = [draw(rng(s), "mixed", stress="offset2") for s in range(2000)]
    offsets = [(np.mean(w.history) - w.level) / w.spread for w in drawn if len(w.history) == 20]
    assert pytest.approx(-1, abs=0.05) == np.mean(offsets)


def test_four_times_the_examples_leave_a_known_share_of_the_spread():
    stress = Stress(evaluation_share=0.9, examples=4.0)
    assert pytest.approx(np.sqrt(0.1 + 0.9 / 4)) == stress.spread_factor
    simulated = world(stress, portfolio="all_good")
    values = [simulated.shadow_run(BASELINE, seed).metric for seed in range(4000)]
    assert pytest.approx(simulated.workload.spread * stress.spread_factor, rel=0.05) == np.std(
        values
    )


def test_nodes_of_two_kinds_differ_by_their_ratio_around_one():
    stress = Stress(node_sd=0.0, slow_nodes=0.3, slow_node_ratio=1.22)
    chance = rng()
    factors = np.array([node_factor(chance, stress) for _ in range(40_000)])
    assert pytest.approx(1, abs=0.002) == factors.mean()
    low, high = np.unique(factors.round(9))
    assert pytest.approx(1.22) == high / low
    assert pytest.approx(0.3, abs=0.01) == (factors > 1).mean()


def test_early_stopping_varies_steps_and_hours_alike():
    stress = Stress(node_sd=0.0, restart_sd=0.0, run_length_sd=0.25)
    simulated = world(stress)
    runs = [simulated.shadow_run(BASELINE, seed) for seed in range(8000)]
    lengths = np.array([run.length for run in runs])
    assert pytest.approx(1, abs=0.01) == lengths.mean()
    assert pytest.approx(0.25, rel=0.03) == np.log(lengths).std()
    job, base = simulated.workload, simulated.workload.arms[0]
    hours = np.array([run.hours for run in runs]) / lengths
    assert pytest.approx(job.hours(base)) == hours.mean()
    assert hours.std() < 1e-9 * hours.mean()
    assert 1.0 == length_factor(rng(), Stress())


def test_start_up_is_outside_the_steps_and_not_shortened_by_an_early_stop():
    stress = Stress(node_sd=0.0, restart_sd=0.0, run_length_sd=0.25)
    simulated = world(stress, start_up_seconds=3600.0)
    for seed in range(20):
        run = simulated.shadow_run("compile-1", seed)
        assert pytest.approx(1.0) == run.hours - run.step_hours
        expected = simulated.workload.step_hours(simulated.workload.arm("compile-1"), run.length)
        assert pytest.approx(expected) == run.step_hours


def test_a_stress_leaves_the_chance_of_everything_else_as_it_is():
    """Same seed, same jobs: cells differ by their stress alone."""
    plain, moving = (draw(rng(5), "mixed", stress=name) for name in ("none", "trend5"))
    assert replace(plain, stress=moving.stress) == moving


@pytest.mark.parametrize("stress", STRESSES)
def test_every_stress_can_be_drawn_and_run(stress):
    simulated = World(draw(rng(2), "mixed", stress=stress), rng(2))
    assert all(np.isfinite(in_turns(simulated, 2)))
