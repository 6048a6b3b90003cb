"""Whether whole jobs confirm what the short blocks showed, before a promotion.

Asked of the one estimate of whole jobs (whole_job.py), r the candidate's price per hour over the
baseline's, each on its own:

- measured: every finished full run was timed
- plausible: the full runs are not faster than the blocks leave possible
- the estimate reaches reject_speedup x r
- its one-sided bound at alpha/K exceeds reject_speedup x r
- its interval, mapped to money, excludes a loss: the lower end exceeds r

``disproved``: no more runs would help. The estimate lies below the bar by more than three
standard errors' chance; or a cheaper cluster, which may be slower than the bar, takes longer than
today by so much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from compilegate.domain.judging.evidence import Arm, Evidence, finished
from compilegate.domain.judging.speed import log_price_ratio
from compilegate.domain.judging.whole_job import BEYOND_DOUBT, WholeJob


class Agreement(StrEnum):
    """What whole jobs say of a candidate whose blocks were fast enough."""

    CONFIRMED = "confirmed"
    UNMEASURED = "unmeasured"
    IMPLAUSIBLE = "implausible"
    BELOW = "below"
    UNPROVEN = "unproven"
    MAY_LOSE = "may_lose"


@dataclass(frozen=True)
class Confirmation:
    """The answer; ``bar`` is the ratio that has to be exceeded, ``bound`` the one proven."""

    agreement: Agreement
    disproved: bool
    bar: float
    bound: float | None


def confirm(candidate: Arm, evidence: Evidence, whole: WholeJob | None) -> Confirmation:
    """Whether the estimate of whole jobs allows a promotion."""
    cost, policy = log_price_ratio(candidate, evidence), evidence.policy
    bar = math.log(policy.reject_speedup) + cost
    timed = all(run.wall_seconds for run in finished(candidate.quality))
    if whole is None or whole.measured is None or not timed:
        return Confirmation(Agreement.UNMEASURED, False, math.exp(bar), None)
    best = whole.upper(BEYOND_DOUBT)
    disproved = best < bar or (cost < 0 and best < 0)
    bound = whole.bound(policy.alpha / len(evidence.candidates))
    agreement = Agreement.CONFIRMED
    if whole.implausible:
        agreement = Agreement.IMPLAUSIBLE
    elif whole.log < bar or disproved:
        agreement = Agreement.BELOW
    elif whole.bound(whole.level / 2) <= cost:
        agreement = Agreement.MAY_LOSE
    elif bound <= bar:
        agreement = Agreement.UNPROVEN
    return Confirmation(agreement, disproved, math.exp(bar), math.exp(bound))
