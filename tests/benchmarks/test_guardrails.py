"""What the simulation of guardrails says is what the shipped gate does with several metrics."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks.decision.gate import baseline_runs
from benchmarks.decision.gate_curve import ALPHA, HISTORY, MODES
from benchmarks.decision.guardrails import MODE, RESULTS, WORLDS, trials
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import Design, looks
from compilegate.domain.judging.judge import GRAVEST, QUALITY_VERDICTS
from compilegate.domain.judging.quality import judge_quality

CELLS = json.loads(RESULTS.read_text())["cells"]


def test_a_cell_is_what_the_judges_gates_do_together() -> None:
    paths, losses, spread = 150, (0.0, 0.5), 0.7
    n_max, design, _ = MODES[MODE]
    gate = Design(HISTORY, n_max, ALPHA, metrics=len(losses))
    rng, ends = np.random.default_rng(1), []
    for _ in range(paths):
        drawn = [[spread * rng.standard_normal(n) for n in (n_max, n_max, HISTORY)] for _ in losses]
        for look, n in enumerate(looks(n_max)):
            beside, verdicts = baseline_runs(design, n, look), []
            for loss, (ours, theirs, past) in zip(losses, drawn, strict=True):
                samples = Samples(
                    (ours[:n] - loss).tolist(), theirs[:beside].tolist(), past.tolist(),
                    [0] * beside,
                )  # fmt: skip
                verdicts.append(QUALITY_VERDICTS[judge_quality(samples, 1.0, gate).outcome][0])
            verdict = min(verdicts, key=GRAVEST.index)
            if verdict != "continue":
                break
        ends.append((verdict, n))
    expected = trials(losses, spread, 0.0, paths=10_000)

    for share, verdict in ((expected.promoted, "promote"), (expected.worse, "stay_off")):
        made = sum(one == verdict for one, _ in ends) / paths
        error = 4 * math.sqrt(share / 100 * (1 - share / 100) / paths)
        assert pytest.approx(share / 100, abs=error) == made
    assert pytest.approx(expected.runs, rel=0.2) == sum(n for _, n in ends) / paths


def test_a_candidate_that_loses_the_margin_of_any_metric_is_promoted_within_the_level() -> None:
    lost = [cell for cell in CELLS if max(WORLDS[cell["world"]]) >= 1]

    assert {"three guardrails, one loses a margin"} < {cell["world"] for cell in lost}
    assert max(cell["promoted"] for cell in lost) <= 100 * ALPHA


@pytest.mark.parametrize("figure", ["worse", "alarms"])
def test_a_sound_candidate_is_given_up_or_alarmed_no_more_often_with_guardrails(
    figure: str,
) -> None:
    alone, guarded = (
        [cell[figure] for cell in CELLS if cell["world"] == world]
        for world in ("one metric", "three guardrails")
    )

    assert max(guarded) <= max(alone) + 0.5
