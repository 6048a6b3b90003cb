"""An arm against itself: how often do the speed gate's intervals cover 1, where nothing differs?

Both arms of the speed job are one arm under two names, so every ratio but 1 is noise. Of twelve
blocks, every choice of three is what a trial of three blocks could have seen.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from benchmarks.gpu.judged import ratio
from benchmarks.gpu.workloads import BASELINE, Arm, Workload

AGAIN = "again"
BLOCKS = 12
OF_A_TRIAL = 3
PROMISED = 0.95


def against_itself(workload: Workload, arm: Arm) -> Workload:
    """The workload with this arm as the baseline and, under another name, as the candidate."""
    twins = tuple(dataclasses.replace(arm, name=name, quality=False) for name in (BASELINE, AGAIN))
    name = f"{workload.name}-{arm.name}-again"
    return dataclasses.replace(workload, name=name, arms=twins, quality_steps=None)


def coverage(logs: Sequence[float]) -> dict[str, Any]:
    """Ratios of the blocks, their interval, and the share of three-block intervals that hold 1.

    ``logs`` are logarithms of steady speed-ups, one a block. Choices of three share blocks, so
    the share is an average of dependent answers, not a count of trials.
    """
    chosen = [ratio(three) for three in itertools.combinations(logs, OF_A_TRIAL)]
    covered = [one for one in chosen if one and _holds_one(one)]
    whole = ratio(logs)
    return {
        "blocks": len(logs),
        "all": whole,
        "holds_one": _holds_one(whole) if whole and len(logs) > 1 else None,
        "choices_of_three": len(chosen),
        "share_that_holds_one": len(covered) / len(chosen) if chosen else None,
        "promised": PROMISED,
    }


def _holds_one(one: dict[str, Any]) -> bool:
    low, high = one["interval"]
    return bool(low <= 1 <= high)
