"""The simulated gate, with one metric and with guardrails, ends trials as the judge's gates do."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks.decision import gate_curve, guardrails
from benchmarks.decision.gate import baseline_runs
from benchmarks.decision.gate_curve import ALPHA, HISTORY, MODES
from benchmarks.decision.guardrails import WORLDS
from compilegate.domain.judging.comparison import Samples
from compilegate.domain.judging.design import Design, looks
from compilegate.domain.judging.judge import GRAVEST, QUALITY_VERDICTS
from compilegate.domain.judging.quality import judge_quality

CURVE, GUARDED = (
    json.loads(kept.RESULTS.read_text())["cells"] for kept in (gate_curve, guardrails)
)
SPREAD = 0.7  # of a run, in margins


def ends(losses: tuple[float, ...], mode: str, paths: int) -> list[tuple[str, int]]:
    """Verdict and runs of trials that the judge's own gates end, all metrics taken together."""
    n_max, design, level = MODES[mode]
    gate = Design(HISTORY, n_max, ALPHA, rho=ALPHA / level, metrics=len(losses))
    rng, made = np.random.default_rng(1), []
    for _ in range(paths):
        drawn = [[SPREAD * rng.standard_normal(n) for n in (n_max, n_max, HISTORY)] for _ in losses]
        for look, n in enumerate(looks(n_max)):
            beside, verdicts = baseline_runs(design, n, look), []
            for loss, (ours, theirs, past) in zip(losses, drawn, strict=True):
                both = (ours[:n] - loss).tolist(), theirs[:beside].tolist()
                samples = Samples(*both, past.tolist(), [0] * beside)
                verdicts.append(QUALITY_VERDICTS[judge_quality(samples, 1.0, gate).outcome][0])
            verdict = min(verdicts, key=GRAVEST.index)
            if verdict != "continue":
                break
        made.append((verdict, n))
    return made


def share_of(verdict: str, made: list[tuple[str, int]], percent: float) -> None:
    """The verdict's share is the simulated one but for chance: that of far more trials is small."""
    share, paths = percent / 100, len(made)
    error = 4 * math.sqrt(share * (1 - share) / paths)
    assert pytest.approx(share, abs=error) == sum(one == verdict for one, _ in made) / paths


@pytest.mark.parametrize("mode", MODES)
def test_a_point_of_the_curve_is_what_the_judges_gate_does(mode: str) -> None:
    made = ends((0.5,), mode, 300)
    drawn = gate_curve.passed(0.5, SPREAD, mode=mode, paths=5000)

    share_of("promote", made, drawn.percent)
    assert pytest.approx(drawn.runs, rel=0.2) == sum(n for _, n in made) / len(made)


def test_a_cell_with_guardrails_is_what_the_judges_gates_do_together() -> None:
    made = ends((0.0, 0.5), guardrails.MODE, 150)
    drawn = guardrails.trials((0.0, 0.5), SPREAD, 0.0, paths=5000)

    share_of("promote", made, drawn.promoted)
    share_of("stay_off", made, drawn.worse)
    assert pytest.approx(drawn.runs, rel=0.2) == sum(n for _, n in made) / len(made)


def test_a_loss_of_the_margin_passes_at_most_as_often_as_its_level_says() -> None:
    assert {(mode, 1.0) for mode in MODES} <= {(cell["mode"], cell["loss"]) for cell in CURVE}
    for cell in CURVE:
        assert cell["loss"] < 1 or cell["percent"] <= 100 * MODES[cell["mode"]][2]


def test_a_candidate_that_loses_the_margin_of_any_metric_is_promoted_within_the_level() -> None:
    lost = [cell for cell in GUARDED if max(WORLDS[cell["world"]]) >= 1]

    assert {"three guardrails, one loses a margin"} < {cell["world"] for cell in lost}
    assert max(cell["promoted"] for cell in lost) <= 100 * ALPHA


@pytest.mark.parametrize("figure", ["worse", "alarms"])
def test_a_sound_candidate_is_given_up_or_alarmed_no_more_often_with_guardrails(
    figure: str,
) -> None:
    alone, guarded = (
        [cell[figure] for cell in GUARDED if cell["world"] == world]
        for world in ("one metric", "three guardrails")
    )

    assert max(guarded) <= max(alone) + 0.5
