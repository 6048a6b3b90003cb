"""The training job of a production run's attempt: its arm, its price, its request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Facts
from compilegate.domain.flag import CompileBundle, parse_flag
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.production.arm import baseline_arm, on_machines, with_overrides
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun
from compilegate.domain.request.build import JobSite, ProductionJob, production_request
from compilegate.domain.service_limits import RequestLimits


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
