"""How many jobs of a round run at the same time, and whether the account's quotas hold them.

A quota counts the instances of one type that training jobs use at one time. Where it holds fewer
than all jobs of a round, the state machine starts as many as it holds and the next one as one
ends. Whatever else uses the account's quota is waited for (``rounds.QUOTA_WAIT_SECONDS``).
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compilegate.domain.planning.arms import CANDIDATE, ArmPlan, Cluster, node_groups
from compilegate.domain.planning.proof import Proof
from compilegate.domain.reasons import Reason

# Instances of a type that training jobs may run at once, None where the quota is unknown.
QuotaLookup = Callable[[str], int | None]
# One block stops most slow candidates; then come those up to the judge's next look, at most two.
BLOCKS_PER_ROUND = 2
# Iterations that an inline Map of Step Functions runs at once.
MOST_AT_ONCE = 40
SPEED, QUALITY = "speed", "quality"


@dataclass(frozen=True)
class Need:
    """Instances of one type that one job takes, and the most that a round runs at once."""

    instance_type: str
    one_job: int
    at_once: int
    quota: int | None
    spot: bool = False

    @property
    def quota_name(self) -> str:
        """The quota as the Service Quotas console lists it."""
        return f"{self.instance_type} for {'spot ' * self.spot}training job usage"


@dataclass(frozen=True)
class RoundLayout:
    """The round of a stage that takes most turns: its jobs, and how many run at the same time."""

    stage: str
    jobs: int
    at_once: int

    @property
    def waves(self) -> int:
        """How many jobs at most run one after the other."""
        return waves(self.jobs, self.at_once)


def max_concurrency(clusters: Sequence[Cluster], quota: QuotaLookup) -> int:
    """Jobs of a round that may run at once in any combination, at least one.

    An unknown quota counts as the largest single job of its type: it may hold no more.
    """
    limit = min(max(len(clusters), 1), MOST_AT_ONCE)
    for kind in dict.fromkeys(cluster.instance_type for cluster in clusters):
        sizes = [cluster.instances for cluster in clusters if cluster.instance_type == kind]
        room = quota(kind)
        # If the largest jobs of this type come first.
        together = list(itertools.accumulate(sorted(sizes, reverse=True)))
        fitting = bisect.bisect_right(together, max(sizes) if room is None else room)
        if fitting < len(sizes):
            limit = min(limit, max(fitting, 1))
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


def unknown(_instance_type: str) -> int | None:
    """A quota that was never read."""
    return None


def needs(
    arms: Sequence[ArmPlan], proof: Proof, *, spot: bool, quota: QuotaLookup
) -> tuple[Need, ...]:
    """What the plan takes of each instance type, in the order of its arms."""
    one_job: dict[str, int] = {}
    for arm in arms:
        most = max(one_job.get(arm.instance_type, 0), arm.instance_count)
        one_job[arm.instance_type] = most
    at_once: Counter[str] = Counter()
    for clusters in (_speed_round(arms), *_full_rounds(arms, proof, proof.runs)):
        kinds = (one.instance_type for one in clusters for _ in range(one.instances))
        at_once |= Counter(kinds)
    return tuple(
        Need(kind, instances, max(instances, at_once[kind]), quota(kind), spot)
        for kind, instances in one_job.items()
    )


def too_low(required: Sequence[Need]) -> Reason | None:
    """Why a trial would end at its first job: SageMaker would refuse it."""
    for need in required:
        if need.quota is not None and need.one_job > need.quota:
            return Reason(
                "quota_too_low",
                f"a job needs {need.one_job} x {need.instance_type}, and the account's quota is "
                f"{need.quota}",
                fix=f'request {need.at_once} for "{need.quota_name}" under Service Quotas, Amazon '
                "SageMaker, or use fewer instances",
            )
    return None


def layouts(arms: Sequence[ArmPlan], proof: Proof, quota: QuotaLookup) -> tuple[RoundLayout, ...]:
    """How the rounds of speed blocks and of full runs are laid out within the quotas."""
    speed = _layout(SPEED, _speed_round(arms), quota)
    full = [
        _layout(QUALITY, clusters, quota) for clusters in _full_rounds(arms, proof, proof.n_max)
    ]
    return (speed, *([max(full, key=lambda layout: (layout.waves, layout.jobs))] if full else []))


def _layout(stage: str, clusters: Sequence[Cluster], quota: QuotaLookup) -> RoundLayout:
    return RoundLayout(stage, len(clusters), max_concurrency(clusters, quota))


def _speed_round(arms: Sequence[ArmPlan]) -> list[Cluster]:
    """Each group's jobs, and both blocks', where there are several groups."""
    groups = node_groups(arms)
    jobs = BLOCKS_PER_ROUND if len(groups) > 1 else 1
    return [group[0].cluster for group in groups] * jobs


def _full_rounds(arms: Sequence[ArmPlan], proof: Proof, runs: int) -> Iterator[list[Cluster]]:
    """Every round of full runs until a candidate has ``runs``, each candidate with the baseline."""
    for arm in arms:
        if arm.role == CANDIDATE:
            for more, base in proof.rounds(runs):
                yield full_round(arm, arms[0], more, base)


def full_round(candidate: ArmPlan, baseline: ArmPlan, more: int, base: int) -> list[Cluster]:
    """Machines of a round of full runs: ``more`` of a candidate, ``base`` of the baseline."""
    return [candidate.cluster] * more + [baseline.cluster] * base
