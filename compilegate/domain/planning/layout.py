"""How many jobs of a round run at the same time, so that the account's quotas hold them.

A quota counts the instances of one type that training jobs use at one time. Where it holds fewer
than all jobs of a round, the state machine starts as many as it holds and the next one as one
ends. Whatever else uses the account's quota is waited for (``rounds.QUOTA_WAIT_SECONDS``).
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Instances of a type that training jobs may run at once, None where that is not known.
QuotaLookup = Callable[[str], int | None]
# As many iterations as an inline Map of Step Functions runs at once.
MOST_AT_ONCE = 40


@dataclass(frozen=True)
class Cluster:
    """The machines of one job."""

    instance_type: str
    instances: int


def max_concurrency(clusters: Sequence[Cluster], quota: QuotaLookup) -> int:
    """Jobs of a round that may run at once whichever they are, at least one.

    An unknown quota counts as the largest single job of its type: it may hold no more.
    """
    limit = min(max(len(clusters), 1), MOST_AT_ONCE)
    for kind in dict.fromkeys(cluster.instance_type for cluster in clusters):
        sizes = [cluster.instances for cluster in clusters if cluster.instance_type == kind]
        limit = min(limit, _that_fit(sizes, quota(kind), of=len(clusters)))
    return limit


def makespan(hours: Sequence[float], at_once: int) -> float:
    """Hours until the last of these jobs has ended, started in their order as places come free."""
    free = [0.0] * max(1, min(at_once, len(hours)))
    for job in hours:
        heapq.heapreplace(free, free[0] + job)
    return max(free)


def waves(jobs: int, at_once: int) -> int:
    """How many jobs at most run one after the other in the same place."""
    return math.ceil(jobs / at_once)


def unlimited(_instance_type: str) -> int | None:
    """A quota that holds every round."""
    return 10**9


def _that_fit(sizes: Sequence[int], quota: int | None, *, of: int) -> int:
    """How many of a round's ``of`` jobs may run at once if the largest of this type come first."""
    largest = sorted(sizes, reverse=True)
    room = largest[0] if quota is None else quota
    together = list(itertools.accumulate(largest))
    return of if together[-1] <= room else max(bisect.bisect_right(together, room), 1)
