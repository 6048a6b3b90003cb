"""Every parameter of Stress does what it says: moments of what the worlds make."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.decision.noise import SHAPES, noise
from benchmarks.decision.portfolio import draw
from benchmarks.decision.truth import BASELINE, STRESSES, Stress
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


def test_shapes_are_heavy_tailed_or_lean_to_the_bad_side():
    tails = [(abs(noise(rng(), 400_000, Stress(noise=shape))) > 5).mean() for shape in SHAPES]
    assert tails[0] < 1e-4 < tails[1]
    assert (noise(rng(), 100_000, Stress(noise="skew")) ** 3).mean() < -1


def test_a_late_loss_begins_with_the_arms_fourth_run():
    simulated = world(replace(quiet(), lost_from=3))
    losses = []
    for seed in range(5):
        run = simulated.shadow_run("compile-1", seed).metric
        losses.append(simulated.shadow_run(BASELINE, seed).metric - run)
    margin = simulated.workload.margin
    assert pytest.approx([0, 0, 0, margin, margin], abs=1e-9) == losses


def test_a_trend_moves_both_arms_with_every_run():
    runs = np.mean([in_turns(world(Stress(trend=0.05), seed=s), 20) for s in range(300)], axis=0)
    for arm in (runs[::2], runs[1::2]):
        slope = np.polyfit(np.arange(0, 40, 2), arm, 1)[0]
        assert pytest.approx(0.05, abs=0.006) == slope


def test_a_night_gives_its_share_of_the_variance_to_both_arms():
    pairs = [
        in_turns(world(Stress(nights=0.5), seed=s, portfolio="all_good"), 1) for s in range(4000)
    ]
    base, candidate = np.array(pairs).T
    assert pytest.approx(1, rel=0.05) == base.std()
    correlated = 0.5 * 0.8  # the next night
    assert pytest.approx(correlated, abs=0.05) == np.corrcoef(base, candidate)[0, 1]


def test_a_stress_leaves_the_chance_of_everything_else_as_it_is():
    """Same seed, same jobs: cells differ by their stress alone."""
    plain, moving = (draw(rng(5), "mixed", stress=name) for name in ("none", "trend5"))
    assert replace(plain, stress=moving.stress) == moving


@pytest.mark.parametrize("stress", STRESSES)
def test_every_stress_can_be_drawn_and_run(stress):
    simulated = World(draw(rng(2), "mixed", stress=stress), rng(2))
    assert all(np.isfinite(in_turns(simulated, 2)))
