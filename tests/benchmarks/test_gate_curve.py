"""The gate's operating characteristic is the shipped gate's."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks.decision.gate import baseline_runs
from benchmarks.decision.gate_curve import ALPHA, HISTORY, MODES, RESULTS, passed
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import Design, looks
from compilegate.domain.judging.quality import QualityOutcome, judge_quality


@pytest.mark.parametrize("mode", MODES)
def test_a_point_of_the_curve_is_what_the_judges_gate_does(mode: str) -> None:
    paths, loss, spread = 300, 0.5, 0.7
    n_max, design, level = MODES[mode]
    gate = Design(HISTORY, n_max, ALPHA, rho=ALPHA / level)
    rng = np.random.default_rng(1)
    held, made = 0, 0
    for _ in range(paths):
        ours, theirs, past = (spread * rng.standard_normal(n) for n in (n_max, n_max, HISTORY))
        for look, n in enumerate(looks(n_max)):
            beside = theirs[: baseline_runs(design, n, look)]
            after = [0] * len(beside)
            samples = Samples((ours[:n] - loss).tolist(), beside.tolist(), past.tolist(), after)
            outcome = judge_quality(samples, 1.0, gate).outcome
            if outcome is not QualityOutcome.MORE_RUNS:
                break
        held, made = held + (outcome is QualityOutcome.HELD), made + n
    drawn = passed(loss, spread, mode=mode, paths=20_000)

    share = drawn.percent / 100
    error = 4 * math.sqrt(share * (1 - share) / paths)
    assert pytest.approx(share, abs=error) == held / paths
    assert pytest.approx(drawn.runs, rel=0.2) == made / paths


def test_a_loss_of_the_margin_passes_at_most_as_often_as_its_level_says() -> None:
    cells = json.loads(RESULTS.read_text())["cells"]

    assert {(mode, 1.0) for mode in MODES} <= {(cell["mode"], cell["loss"]) for cell in cells}
    for cell in cells:
        assert cell["loss"] < 1 or cell["percent"] <= 100 * MODES[cell["mode"]][2]
