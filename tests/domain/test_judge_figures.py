"""Figures of the judge's method, each with its source or a simulation behind it, where it stands.

Whoever changes one decides otherwise on the same evidence: that is another judge, with the next
JUDGE_VERSION, and benchmarks/decision says what it does to false promotions and power.
"""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.judging import (
    comparison,
    design,
    drift,
    equivalence,
    evaluation,
    evidence,
    evidence_file,
    identity,
    judge,
    monitor,
    next_step,
    outcomes,
    outlook,
    probation,
    quality,
    run_work,
    same_quality,
    speed,
    steady_state,
    student,
    target,
    validity,
    whole_job,
)

JUDGED_BY = "3.0.0"
FIGURES: dict[ModuleType, dict[str, object]] = {
    evaluation: {
        "NORMAL_90": 1.2816, "FAR_BELOW": -2.5, "LEAST_DF": 3, "ROUNDED": 0.0002,
        "FACTORS": (2, 4, 8, 16, 32, 64), "WORTH": 0.5,
        "OPEN_PROOF": ("more_runs", "underpowered", "inconclusive"),
        "LINES": ((0.0, 1.0), (0.0, 100.0), (1.0, -1.0), (100.0, -100.0)),
    },
    evidence: {"_MOST": 1_000_000_000},
    evidence_file: {"ID_LENGTH": 16},
    outcomes: {"MOST_EXAMPLES": 10**12, "ROUNDED_BITS": 1e-6, "ROUNDED_LOSSES": 2**-10},
    comparison: {"BESIDE_SHARE": 0.5},
    design: {
        "SCHEDULE": (2, 3, 5, 8, 12, 18, 24, 36, 54, 72, 96),
        "CALIBRATED": {2: 1.0, 3: 0.86, 5: 0.71, 8: 0.67, 12: 0.6, 18: 0.58, 24: 0.53, 36: 0.51,
                       54: 0.52, 72: 0.47, 96: 0.45},
        "LIKELY": 0.8, "VERY_LIKELY": 0.9, "EVEN": 0.5, "FAIR": 0.2, "MOST_RUNS": 500,
        "GREATEST_LEVEL": 0.25, "SHADOW_RUNS": 12, "LONGEST_SHADOW": 36, "SHARE": 0.5,
        "LONG_SHARE": 0.4,
    },
    drift: {"KAPPA": 0.5, "CONFLICT": 1.4},
    judge: {
        "SPEED_VERDICTS": {
            "passed": ("promote", "speedup_proven"), "too_slow": ("stay_off", "speedup_too_small"),
            "below_promote": ("stay_off", "speedup_below_promote"),
            "crashed": ("stay_off", "candidate_crashed"),
            "other_steps": ("promote", "steps_differ"),
            "more_blocks": ("continue", "speed_needs_blocks"),
            "inconclusive": ("inconclusive", "speed_inconclusive"),
        },
        "QUALITY_VERDICTS": {
            "held": ("promote", "quality_held"), "worse": ("stay_off", "quality_worse"),
            "crashed": ("stay_off", "candidate_crashed"),
            "more_runs": ("continue", "quality_needs_runs"),
            "underpowered": ("inconclusive", "underpowered"),
            "inconclusive": ("inconclusive", "quality_inconclusive"),
            "seeds_repeated": ("inconclusive", "seeds_repeated"),
            "unreported": ("inconclusive", "guardrail_unreported"),
        },
        "GUARDRAIL_CODES": {
            "held": "guardrail_held", "worse": "guardrail_worse",
            "more_runs": "guardrail_needs_runs", "unreported": "guardrail_unreported",
        },
        "GRAVEST": ("stay_off", "inconclusive", "continue", "promote"),
    },
    identity: {"IDENTICAL_PAIRS": 2, "SAME_METRIC": 1e-12},
    monitor: {
        "FIRST": 3, "LAST": 12, "WRONG_REVERT": 0.1, "WRONG_CLEAR": 0.05, "TIE": 1e-9,
        "FALSE_ALARM": 0.02, "RELIABLE_SPREAD": 1.2, "WALL_SD": 0.04, "LEAST_WALL_SD": 0.01,
        "LEAST_DF": 4, "LEAST_CHECKED_SHIFT": 0.1, "SUSPICIOUS": 0.65, "LEAST_CONTRADICTION": 2,
        "OVERSHOOT": 1.166,
    },
    next_step: {
        "CHANCE_OF_A_WIN": 0.4, "TYPICAL_WIN": 1.35, "RUNS_DURING_TRIAL": 2,
        "FULL_RUNS_EXPECTED": 1.5, "CHANCE_QUALITY_HOLDS": 0.8, "FIRST_SEED": 17,
    },
    equivalence: {
        "CONFIDENCE": 0.95, "RATIO": 10.0, "WRONG_ERROR": 0.25, "LEAST_STEPS": 3,
        "MOST_STEPS": 100, "LARGEST_EPSILON": 0.25,
    },
    outlook: {"LONGEST_HISTORY": 60, "MOST_RUNS": 100_000},
    probation: {"LEAST_REFERENCE": 3, "CRASHES": 2},
    quality: {
        "WORSE_LEVEL": 0.007, "BEYOND_DOUBT": 0.0005, "CONTRADICTED": 0.01, "DOUBT_DF": 3,
        "FUTILE": 0.15, "ENOUGH_HISTORY": 5, "COPIED": 1e-12, "REPEATED_SHARE": 0.5,
    },
    run_work: {
        "SAME_WORK": 0.02, "LEAST_NEAR": 0.9, "SAME_TOKENS": 0.1, "UNTIMED_SECONDS": 180.0,
        "UNTIMED_SHARE": 0.05, "UNTIMED_OF_SHORT": 0.1, "LEAST_UNTIMED": 60.0,
    },
    same_quality: {"SMOOTHED_SHARE": 0.1, "LEAST_POINTS": 10, "BEYOND_CHANCE": 3.0},
    speed: {
        "SPEED_LOOKS": (3, 4, 6), "BLOCK_SD": 0.03, "ASSUMED_APART_SD": 0.08 * math.sqrt(2),
        "HOPELESS_SHARE": 0.2, "COPIED": 1e-9,
    },
    target: {
        "LEAST_REACHED": 3, "AS_OFTEN": 1.1, "AS_DEAR": 1.1,
        "OTHER_STEPS": {"batch_size", "learning_rate", "hyperparameters", "entry_point"},
    },
    student: {"CONFIDENCE": 0.95, "_TINY": 1e-300, "_PRECISION": 1e-16, "_MAX_TERMS": 1000},
    steady_state: {
        "WINDOW": 15, "MIN_WARM_UP": 20, "MIN_STEPS": 40, "SHORTEST_STEP": 1e-9, "BAND": 4.4478,
        "WINSORIZED_SHARE": 0.02, "SPIKE_RATIO": 10.0,
    },
    validity: {"FEW_RUNS": 2, "INITIAL_LOSS_TOLERANCE": 0.01},
    whole_job: {
        "PRIOR_DF": 3.0, "WALL_SD": 0.08, "UNSEEN_SD": 0.02, "TOO_FAST": 1.1,
        "BEYOND_DOUBT": 0.00135, "PAIRS": 2, "CHANGED": 6.0, "CALM": 2.0, "LEAST_UNSEEN": 0.01,
    },
}  # fmt: skip


def test_the_figures_are_those_of_this_judge():
    assert JUDGED_BY == JUDGE_VERSION


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in FIGURES.items() for name in names]
)
def test_a_figure_is_what_the_method_was_tried_with(module, name):
    assert FIGURES[module][name] == getattr(module, name)
