"""What a decision's figures allow to be said: one rule for every screen, page and message.

- "faster" and "slower" only where the interval of the whole job's speed-up excludes equal time
- quality by the reason that decided it, never by the sign of a difference that chance explains
- money only where full runs were timed, no reason says that they do not confirm the short blocks,
  and the whole interval of the saving lies above zero
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from compilegate.domain.decision import Verdict

ON = frozenset({Verdict.PROMOTE, Verdict.PERMANENT})
OFF = frozenset({Verdict.STAY_OFF, Verdict.INELIGIBLE, Verdict.REVERT, Verdict.INVALID})
HELD = frozenset({"quality_held", "weights_identical", "probation_passed"})
# In a probation the runs that checked the alarm decide, not the difference over all of production
# (judging/alarm_check.py).
CHECKED_WORSE = "quality_regressed"
WORSE = frozenset({"quality_worse", CHECKED_WORSE})
# Whole jobs do not confirm what the short blocks showed.
UNCONFIRMED = frozenset(
    {
        "full_run_disagrees",
        "full_run_implausible",
        "full_run_unmeasured",
        "full_run_unproven",
        "saving_unproven",
    }
)
Interval = tuple[float, float]


class SpeedClaim(StrEnum):
    """A whole job's time against the baseline's."""

    FASTER = "faster"
    SLOWER = "slower"
    OPEN = "open"


class QualityClaim(StrEnum):
    """The candidate's quality against the margin."""

    HELD = "held"
    WORSE = "worse"
    OPEN = "open"


class MoneyClaim(StrEnum):
    """What may be said about dollars; ``COSTS`` and what stands before it may name an amount."""

    SAVES = "saves"  # the candidate is on
    IF_ON = "if_on"
    COSTS = "costs"  # the whole interval is a loss
    OFF = "off"  # the candidate stays off, or was turned off
    UNMEASURED = "unmeasured"  # no full run was timed
    UNCONFIRMED = "unconfirmed"

    @property
    def has_amount(self) -> bool:
        """Whether an amount may be named."""
        return self in (MoneyClaim.SAVES, MoneyClaim.IF_ON, MoneyClaim.COSTS)


# Why no amount is named.
NO_AMOUNT = {
    MoneyClaim.OFF: "the candidate is off",
    MoneyClaim.UNMEASURED: "no full run was timed",
    MoneyClaim.UNCONFIRMED: "full runs do not confirm it",
}


def speed_claim(interval: Interval | None) -> SpeedClaim:
    """By the interval of the speed-up; open without one."""
    if interval is None or interval[0] <= 1 <= interval[1]:
        return SpeedClaim.OPEN
    return SpeedClaim.FASTER if interval[0] > 1 else SpeedClaim.SLOWER


def quality_claim(codes: Collection[str]) -> QualityClaim:
    """By the reasons about the candidate."""
    if WORSE & set(codes):
        return QualityClaim.WORSE
    return QualityClaim.HELD if HELD & set(codes) else QualityClaim.OPEN


def money_claim(
    verdict: str, codes: Collection[str], *, full_runs: float | None, interval: Interval | None
) -> MoneyClaim:
    """``full_runs`` are the candidate's that were timed, ``interval`` is the saving's, in USD."""
    if interval is not None and interval[1] < 0:
        return MoneyClaim.COSTS
    if verdict in OFF:
        return MoneyClaim.OFF
    loss = interval is not None and interval[0] <= 0
    if verdict in ON:
        return MoneyClaim.UNCONFIRMED if loss else MoneyClaim.SAVES
    if not full_runs:
        return MoneyClaim.UNMEASURED
    unconfirmed = loss or interval is None or UNCONFIRMED & set(codes)
    return MoneyClaim.UNCONFIRMED if unconfirmed else MoneyClaim.IF_ON
