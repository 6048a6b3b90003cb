"""Whether the account may run the plan's jobs: quotas count instances of a type at one time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compilegate.domain.planning.arm_plan import CANDIDATE, ArmPlan
from compilegate.domain.planning.estimate import BLOCKS_PER_ROUND, full_round
from compilegate.domain.planning.layout import Cluster, QuotaLookup, max_concurrency, waves
from compilegate.domain.planning.proof import Proof
from compilegate.domain.planning.speed_jobs import node_groups
from compilegate.domain.reasons import Reason

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

    @property
    def exceeded(self) -> bool:
        """Whether the jobs of one round exceed the quota, although each fits alone."""
        return self.quota is not None and self.one_job <= self.quota < self.at_once


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
    at_once: Counter[str] = Counter()
    for clusters in (_speed_round(arms), *_full_rounds(arms, proof, proof.runs)):
        at_once |= _instances(clusters)
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
    return (speed, *([max(full, key=lambda found: (found.waves, found.jobs))] if full else []))


def _layout(stage: str, clusters: Sequence[Cluster], quota: QuotaLookup) -> RoundLayout:
    return RoundLayout(stage, len(clusters), max_concurrency(clusters, quota))


def _instances(clusters: Sequence[Cluster]) -> Counter[str]:
    found: Counter[str] = Counter()
    for cluster in clusters:
        found[cluster.instance_type] += cluster.instances
    return found


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
