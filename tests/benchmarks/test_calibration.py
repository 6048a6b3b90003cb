import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.decision import calibrate as calibration
from benchmarks.decision.calibrate import LOOKS, Sample, achieved, factor, nulls, pass_levels

TABLE = Path(calibration.__file__).with_name("calibration.json")


def test_a_growing_sample_has_the_law_of_runs_drawn_one_by_one():
    sample = Sample(np.random.default_rng(1), 100_000)
    for size in (2, 3, 8):
        sample.grow(size)
    assert pytest.approx(1 / 8, rel=0.02) == sample.mean.var()
    assert pytest.approx([7, 14], rel=0.03) == [sample.squares.mean(), sample.squares.var()]
    assert abs(np.corrcoef(sample.mean, sample.squares)[0, 1]) < 0.02


def test_one_look_alone_is_at_most_its_level():
    levels = pass_levels(nulls(np.random.default_rng(2), 100_000, 5))
    for i in range(len(LOOKS)):
        assert (levels[:, i] <= 0.05).mean() < 0.053


def test_the_factor_spends_exactly_the_level():
    levels = pass_levels(nulls(np.random.default_rng(3), 50_000, 0))
    c = factor(levels, 12, 0.05)
    assert pytest.approx(0.05, abs=2e-4) == achieved(levels, 12, 0.05, c)


def test_a_straight_simulation_of_runs_agrees():
    rng, paths, history = np.random.default_rng(4), 3000, 5
    passed = np.zeros(paths, dtype=bool)
    x, base = rng.standard_normal((paths, 12)) - 1, rng.standard_normal((paths, 12))
    past = rng.standard_normal((paths, history)) + 0.5 * rng.standard_normal((paths, 1))
    for n in (2, 3, 5, 8, 12):
        mine, theirs = x[:, :n], base[:, :n]
        w_past = 1 / (1 / history + 0.25)
        reference = (w_past * past.mean(1) + n * theirs.mean(1)) / (w_past + n)
        parts = [(values, values.shape[1] - 1) for values in (mine, theirs, past)]
        df = sum(degrees for _, degrees in parts)
        pooled = sum(values.var(axis=1, ddof=1) * degrees for values, degrees in parts) / df
        error = np.sqrt(np.maximum(pooled, mine.var(axis=1, ddof=1)) * (1 / n + 1 / (w_past + n)))
        level = stats.t.sf((mine.mean(1) - reference + 1) / error, df)
        passed |= level <= 0.48 * 0.05 * np.sqrt(n / 12)
    levels = pass_levels(nulls(np.random.default_rng(5), 100_000, history))
    assert pytest.approx(achieved(levels, 12, 0.05, 0.48), abs=0.012) == passed.mean()


def test_the_kept_table_holds_its_levels():
    for row in json.loads(TABLE.read_text())["factors"]:
        assert row["error"] <= row["level"]
        assert row["c_bonferroni"] <= row["c"] <= row["c_exact"]
