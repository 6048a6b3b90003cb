"""The training job of a production run's attempt: its arm, its price, its request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import REQUIRED
from compilegate.domain.facts import Facts
from compilegate.domain.fields import Fields
from compilegate.domain.flag import CompileBundle, parse_flag
from compilegate.domain.planning.arms import CANDIDATE, ArmPlan, plan_arms
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import BegunRun
from compilegate.domain.request.build import JobSite, ProductionJob, production_request
from compilegate.domain.service_limits import RequestLimits
from compilegate.domain.workload.model import BASELINE, Candidate, OwnImage, Training, Workload

TRAINS = "production training follows the flag"
# What an override may change of a job: read as the workload file's own keys are.
_KEYS = {
    **Candidate.keys(),
    "learning_rate": Training.keys()["learning_rate"],
    "image": OwnImage.keys()["uri"],
}
del _KEYS["name"], _KEYS["learning_rate_scaling"]


def baseline_arm(workload: Workload, facts: Facts, *, region: str) -> ArmPlan:
    """The registered job as the planner makes it; raises InvalidInputError where it cannot."""
    arms = plan_arms(workload, (), facts, region=region)
    if isinstance(arms, Reason):
        raise InvalidInputError(arms.message, field=f"workload {workload.name}")
    return arms[0]


def with_overrides(
    baseline: ArmPlan, name: str, overrides: Mapping[str, Any], facts: Facts
) -> ArmPlan:
    """The arm ``name``: ``overrides`` as a flag has them laid over the baseline.

    Raises InvalidInputError for an override that does not fit the job.
    """
    if name == BASELINE:
        return baseline
    check_overrides(overrides)
    arm = replace(baseline, **overrides, name=name, overrides=dict(overrides), role=CANDIDATE)
    return on_machines(replace(arm, why=TRAINS), facts)


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raises InvalidInputError for a key or value that this release cannot override."""
    fields = Fields(overrides, "flag.overrides")
    for key, value in overrides.items():
        if key not in _KEYS:
            raise _unfit(key, "is not a key that this release can override", value)
        try:
            fields.value(key, replace(_KEYS[key], default=REQUIRED))
        except InvalidInputError as error:
            raise _unfit(key, error.problem, value) from error


def on_machines(arm: ArmPlan, facts: Facts) -> ArmPlan:
    """The arm with devices and price of its machines; InvalidInputError for unknown ones."""
    price, instance = facts.price(arm.instance_type), facts.instance(arm.instance_type)
    if price is None or instance is None:
        raise _unfit("instance_type", "has no known price", arm.instance_type)
    return replace(
        arm,
        devices=instance.devices(arm.instance_count),
        usd_per_hour=price.usd_per_hour * arm.instance_count,
    )


def _unfit(key: str, problem: str, value: object) -> InvalidInputError:
    fix = "run a new trial of the workload as it is registered now"
    return InvalidInputError(problem, field=f"flag.overrides.{key}", value=value, fix=fix)


# The job itself: its price and its request.


@dataclass(frozen=True)
class RunJobs:
    """Builds the jobs of a workload's runs; ``deployed`` are the deployment's facts."""

    trained: TrainedJob
    deployed: Facts
    site: JobSite
    limits: RequestLimits

    @cached_property
    def facts(self) -> Facts:
        """The facts that apply: the workload file overrides the deployment."""
        return self.deployed.overridden(self.trained.workload.facts)

    def arm(self, begun: BegunRun, attempt: Attempt) -> ArmPlan:
        """The arm that an attempt trains.

        Raises InvalidInputError for overrides that do not fit the registered job.
        """
        baseline = baseline_arm(self.trained.workload, self.facts, region=self.site.region)
        if attempt.instance_type is not None:
            other = replace(baseline, instance_type=attempt.instance_type)
            return on_machines(other, self.facts)
        return with_overrides(baseline, attempt.arm(begun), begun.overrides, self.facts)

    def usd_per_hour(self, begun: BegunRun, attempt: Attempt) -> float | None:
        """Price of the attempt's cluster; None where the arm cannot be planned any more."""
        try:
            return self.arm(begun, attempt).usd_per_hour
        except InvalidInputError:  # prices may have changed since the request was built
            return None

    def compile_bundle(self, begun: BegunRun, attempt: Attempt) -> CompileBundle | None:
        """What the attempt is to restore: that of the flag as the run has read and follows it.

        A trial's own run starts as the trial's others do. Of a spot job's checkpoint folder no
        other job has a file.
        """
        follows = attempt.as_chosen and begun.overrides and not begun.canary
        if not follows or self.trained.workload.training.spot:
            return None
        return parse_flag(begun.flag).compile_bundle

    def request(self, begun: BegunRun, attempt: Attempt) -> dict[str, Any]:
        """The complete request of an attempt, which SageMaker would take.

        Raises InvalidInputError for one that it would refuse, or that cannot be built.
        """
        arm, chosen = self.arm(begun, attempt), attempt.as_chosen
        decision_id = begun.decision_id if chosen else None
        variables = {
            "COMPILEGATE_STAGE": self.site.stage,
            "COMPILEGATE_RUN": begun.run,
            "COMPILEGATE_ARM": arm.name,
            "COMPILEGATE_WHY": attempt.why(begun),
        }
        if bundle := self.compile_bundle(begun, attempt):
            variables["COMPILEGATE_COMPILE_BUNDLE"] = bundle.sha256
        tags = {**begun.tags} if chosen else {}
        if decision_id:
            variables["COMPILEGATE_DECISION_ID"] = decision_id
            tags[naming.TAG_DECISION] = decision_id
        job = ProductionJob(
            run=begun.run,
            number=attempt.number,
            replicate=begun.number,
            seed=begun.seed,
            variables=variables,
            tags=tags,
            examined=begun.canary is not None,
        )
        context = self.site.context(
            self.trained.workload.name,
            trial=begun.run,
            execution=begun.execution,
            source_key=begun.source_key,
        )
        request = production_request(self.trained.workload, arm, job, context)
        self.limits.check(request)
        return request
