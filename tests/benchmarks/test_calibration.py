import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decision import calibrate as calibration
from benchmarks.decision.calibrate import LEVELS, scenarios
from benchmarks.decision.gate import Array, Sample, achieved, pass_levels, shares, statistic
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import CALIBRATED, SCHEDULE, Design, looks
from compilegate.domain.judging.quality import QualityOutcome, judge_quality

TABLE = json.loads(Path(calibration.__file__).with_name("calibration.json").read_text())


def passes(x: Array, base: Array, past: Array) -> list[bool]:
    """Whether each trial passes at some look by the vectorised gate."""
    levels = np.ones((len(x), len(looks(12))))
    for look, n in enumerate(looks(12)):
        samples = [Sample.of(runs) for runs in (x[:, :n], base[:, :n], past)]
        if compared := statistic(*samples):
            levels[:, look] = compared.level
    return (levels <= CALIBRATED[12] * 0.05 * shares(12)).any(axis=1).tolist()


@pytest.mark.parametrize("history", [0, 5])
def test_the_judge_called_after_every_run_passes_as_often_as_the_vectorised_gate(history):
    """Nothing else ends these trials: the candidates are as likely to pass at any look."""
    rng, paths, judged = np.random.default_rng(4), 20_000, 250
    drawn = [rng.standard_normal((paths, runs)) for runs in (12, 12, history)]
    passed = passes(*drawn)
    assert 5 < sum(passed[:judged])
    for expected, x, base, past in zip(passed[:judged], *drawn, strict=False):
        assert expected == any(
            judge_quality(
                Samples((x[:ours] - 1e6).tolist(), base[:theirs].tolist(), (past - 0.5).tolist()),
                1e6,
                Design(history, 12, 0.05),
            ).outcome
            is QualityOutcome.HELD
            for theirs in range(1, 13)  # the baseline first
            for ours in (theirs - 1, theirs)
            if ours
        )
    levels = pass_levels(
        np.random.default_rng(5), 100_000, design="as many baseline runs", history=history
    )
    expected = achieved(levels, 12, 0.05, CALIBRATED[12])

    assert pytest.approx(expected, abs=3 * (0.05 * 0.95 / paths) ** 0.5) == sum(passed) / paths


@pytest.mark.slow
def test_the_looks_together_err_at_most_at_the_level_in_every_scenario():
    """20,000 other trials than the table's: the bound is the level and three standard errors."""
    paths = 20_000
    for number, (design, history) in enumerate(scenarios()):
        rng = np.random.default_rng([7, number])
        drawn = pass_levels(rng, paths, design=design, history=history)
        for level in LEVELS[:3]:
            errors = {n_max: achieved(drawn, n_max, level, CALIBRATED[n_max]) for n_max in SCHEDULE}

            assert max(errors.values()) <= level + 3 * (level * (1 - level) / paths) ** 0.5, errors


def test_the_kept_table_is_of_the_shipped_rules_and_holds_its_levels():
    assert list(SCHEDULE) == TABLE["looks"] == [row["n_max"] for row in TABLE["factors"]]
    for row in TABLE["factors"]:
        assert CALIBRATED[row["n_max"]] == row["c"] <= row["c_exact"]
        assert row["share"] <= 1 + 2 * row["share_se"]
        assert len(looks(row["n_max"])) > 0
