import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decision import calibrate as calibration
from benchmarks.decision.calibrate import LEVELS, scenarios
from benchmarks.decision.gate import achieved, pass_levels
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import CALIBRATED, SCHEDULE, Design, looks
from compilegate.domain.judging.quality import QualityOutcome, judge_quality

TABLE = json.loads(Path(calibration.__file__).with_name("calibration.json").read_text())


@pytest.mark.parametrize("history", [0, 5])
def test_the_judge_called_after_every_run_passes_as_often_as_the_vectorised_gate(history):
    """Nothing else ends these trials: the candidates are as likely to pass at any look."""
    rng, paths, held = np.random.default_rng(4), 1500, 0
    design = Design(history, 12, 0.05)
    for _ in range(paths):
        x, base = rng.standard_normal((2, 12))
        past = (rng.standard_normal(history) - 0.5).tolist()
        turns = range(1, 13)
        held += any(
            judge_quality(
                Samples((x[:n] - 1e6).tolist(), base[:beside].tolist(), past), 1e6, design
            ).outcome
            is QualityOutcome.HELD
            for n in turns
            for beside in (n - 1, n)
            if beside
        )
    levels = pass_levels(
        np.random.default_rng(5), 100_000, design="as many baseline runs", history=history
    )
    expected = achieved(levels, 12, 0.05, CALIBRATED[12])

    assert pytest.approx(expected, abs=3 * (0.05 * 0.95 / paths) ** 0.5) == held / paths


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
