"""Whether the account may run the plan's jobs: quotas count instances of a type at one time."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compilegate.domain.decision import Reason
from compilegate.domain.judging.looks import looks
from compilegate.domain.planning.arm_plan import CANDIDATE, ArmPlan
from compilegate.domain.planning.estimate import BLOCKS_PER_ROUND
from compilegate.domain.planning.proof import Proof
from compilegate.domain.planning.speed_jobs import node_groups

# Instances of a type that training jobs may run at once, None where that is not known.
QuotaLookup = Callable[[str], int | None]


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

    @property
    def exceeded(self) -> bool:
        """Whether the jobs of one round exceed the quota, although each fits alone."""
        return self.quota is not None and self.one_job <= self.quota < self.at_once


def unknown(_instance_type: str) -> int | None:
    """No quota is known."""
    return None


def needs(
    arms: Sequence[ArmPlan], proof: Proof, *, spot: bool, quota: QuotaLookup
) -> tuple[Need, ...]:
    """What the plan takes of each instance type, in the order of its arms."""
    one_job: dict[str, int] = {}
    for arm in arms:
        most = max(one_job.get(arm.instance_type, 0), arm.instance_count)
        one_job[arm.instance_type] = most
    at_once = _speed_round(arms)
    for arm in arms:
        if arm.role == CANDIDATE:
            at_once |= _full_round(arms[0], arm, proof)
    return tuple(
        Need(kind, instances, max(instances, at_once[kind]), quota(kind), spot)
        for kind, instances in one_job.items()
    )


def too_low(found: Sequence[Need]) -> Reason | None:
    """Why a trial would end at its first job: SageMaker would refuse it."""
    for need in found:
        if need.quota is not None and need.one_job > need.quota:
            return Reason(
                "quota_too_low",
                f"a job takes {need.one_job} x {need.instance_type} and the account's quota is "
                f'{need.quota}; ask for {need.at_once} of "{need.quota_name}" under Service '
                "Quotas, Amazon SageMaker, or name fewer instances",
            )
    return None


def _speed_round(arms: Sequence[ArmPlan]) -> Counter[str]:
    """All jobs of a round side by side: each group's, and both blocks', where there are several."""
    found: Counter[str] = Counter()
    groups = node_groups(arms)
    for group in groups:
        jobs = BLOCKS_PER_ROUND if len(groups) > 1 else 1
        found[group[0].instance_type] += group[0].instance_count * jobs
    return found


def _full_round(baseline: ArmPlan, candidate: ArmPlan, proof: Proof) -> Counter[str]:
    """The largest round up to the expected look: the next runs of both arms side by side."""
    extra = proof.extra_runs(proof.runs)
    ends = sorted({0, *(n for n in looks(proof.n_max) if n <= extra)})
    found: Counter[str] = Counter()
    for start, end in itertools.pairwise(ends):
        theirs = proof.baseline_runs(end) - (proof.baseline_runs(start) if start else 0)
        side_by_side: Counter[str] = Counter()
        side_by_side[candidate.instance_type] += candidate.instance_count * (end - start)
        side_by_side[baseline.instance_type] += baseline.instance_count * theirs
        found |= side_by_side
    return found
