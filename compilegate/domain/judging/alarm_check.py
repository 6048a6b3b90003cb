"""The check of an alarm: pairs of runs, one of each arm in turns, until they say enough.

With b_j, c_j the figures of pair j (higher is better), d_j = b_j - c_j how far the candidate fell,
delta the fall to detect and tau the tolerated one (for a metric m and m/2), Wald's sequential
probability ratio (1945, Annals of Mathematical Statistics 16:117) of a fall of tau + delta/2
against one of tau - delta/2 is, after n pairs of spread s,

    Lambda = sum_j delta (d_j - tau) / (2 s^2) = delta (mean(b) - mean(c) - tau) / (s^2 (2/n))

Pairs of adjacent nights cancel what a night or a drift does to both arms, so nothing older is
compared with. Where the arms have unequal numbers of runs, 1/n_b + 1/n_c stands for 2/n.

    revert at Lambda >= ln((1 - 0.05) / 0.10)      clear at Lambda <= ln(0.05 / (1 - 0.10))

after FIRST to LAST pairs, then by D > tau. The bounds are for 10 % of faultless candidates with an
alarm reverted and 5 % of those that lose delta cleared, without an end at LAST.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain.arithmetic import mean, squares

FIRST, LAST = 3, 12
# Chance, given an alarm, that a faultless candidate is reverted, and that a loss of one shift is
# cleared.
WRONG_REVERT, WRONG_CLEAR = 0.10, 0.05
REVERT_AT = math.log((1 - WRONG_CLEAR) / WRONG_REVERT)
CLEAR_AT = math.log(WRONG_CLEAR / (1 - WRONG_REVERT))
# Share of a shift below which two figures are the same.
TIE = 1e-9


class Outcome(StrEnum):
    """What the pairs so far say."""

    REVERT = "revert"
    CLEAR = "clear"
    OPEN = "open"


@dataclass(frozen=True)
class Fall:
    """How far the candidate stands below the baseline, from so many runs of each.

    ``theirs`` is what the baseline's runs count as, which earlier ones do in part.
    """

    size: float
    ours: float
    theirs: float


@dataclass(frozen=True)
class Look:
    """What the pairs so far say of one figure; ``ratio`` is Lambda, ``spread`` of single runs."""

    fall: Fall
    spread: float
    ratio: float
    outcome: Outcome


def look(fall: Fall, *, shift: float, tolerated: float, spread: float, last: bool) -> Look:
    """What follows from a fall; at the ``last`` pair something does."""
    # Exactly what is tolerated is tolerated, however the last digit came out.
    excess = fall.size - tolerated - TIE * shift
    ratio = shift * (fall.size - tolerated) / (spread**2 * (1 / fall.ours + 1 / fall.theirs))
    if excess > 0 and (last or ratio >= REVERT_AT):
        outcome = Outcome.REVERT
    else:
        outcome = Outcome.CLEAR if last or ratio <= CLEAR_AT else Outcome.OPEN
    return Look(fall, spread, ratio, outcome)


def spread_of(known: float, ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The spread that the check goes by: the known one, or its own runs' if that is larger.

    A spread taken too small would let the first pairs decide; one too large only takes more pairs.
    """
    df = max(len(ours) - 1, 0) + max(len(theirs) - 1, 0)
    own = math.sqrt((squares(ours) + squares(theirs)) / df) if df else 0.0
    return max(known, own)


def mean_fall(
    ours: Sequence[float], theirs: Sequence[float], *, earlier: tuple[float, float] | None
) -> Fall | None:
    """D of the check's runs; ``earlier`` (mean, weight) where the baseline has none among them."""
    if not ours:
        return None
    if theirs:
        return Fall(mean(theirs) - mean(ours), len(ours), len(theirs))
    return None if earlier is None else Fall(earlier[0] - mean(ours), len(ours), earlier[1])
