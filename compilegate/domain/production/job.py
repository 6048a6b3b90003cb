"""The training job of a production run's attempt: its arm, its price, its request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Facts
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.production.arm import baseline_arm, on_instance, with_overrides
from compilegate.domain.production.attempts import Attempt, longest_run_seconds
from compilegate.domain.production.fingerprint import Fingerprint, registered_fingerprint
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.runs import BegunRun
from compilegate.domain.request.build import JobSite, ProductionJob, production_request
from compilegate.domain.request.launcher import RequestLimits


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

    @property
    def longest_seconds(self) -> float:
        """The longest that a run takes: all its attempts and all waiting."""
        return longest_run_seconds(self.trained.workload)

    def arm(self, begun: BegunRun, attempt: Attempt) -> ArmPlan:
        """The arm that an attempt trains.

        Raises InvalidInputError for overrides that do not fit the registered job.
        """
        baseline = baseline_arm(self.trained.workload, self.facts, region=self.site.region)
        if attempt.instance_type is not None:
            return on_instance(baseline, attempt.instance_type, self.facts)
        return with_overrides(baseline, attempt.arm(begun), begun.overrides, self.facts)

    def usd_per_hour(self, begun: BegunRun, attempt: Attempt) -> float | None:
        """Price of the attempt's cluster; None where the arm cannot be planned any more."""
        try:
            return self.arm(begun, attempt).usd_per_hour
        except InvalidInputError:  # prices may have changed since the request was built
            return None

    def request(self, begun: BegunRun, attempt: Attempt) -> dict[str, Any]:
        """The complete request of an attempt, which SageMaker would take.

        Raises InvalidInputError for one that it would refuse, or that cannot be built.
        """
        arm, chosen = self.arm(begun, attempt), attempt.as_chosen
        decision_id = begun.decision_id if chosen else None
        decided = {naming.TAG_DECISION: decision_id} if decision_id else {}
        job = ProductionJob(
            run=begun.run,
            number=attempt.number,
            replicate=begun.number,
            seed=begun.seed,
            variables=_variables(begun, attempt, arm, decision_id, self.site.stage),
            tags={**begun.tags, **decided} if chosen else {},
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

    def fingerprint(self, promotion: Promotion) -> Fingerprint:
        """What the promoted arm's request says; empty where it cannot be planned."""
        return registered_fingerprint(promotion, self.trained, self.facts, region=self.site.region)

    def problem(self, begun: BegunRun, attempt: Attempt) -> InvalidInputError | None:
        """Why the attempt's job cannot be built, None where it can."""
        try:
            self.request(begun, attempt)
        except InvalidInputError as error:
            return error
        return None


def _variables(
    begun: BegunRun, attempt: Attempt, arm: ArmPlan, decision_id: str | None, stage: str
) -> Mapping[str, str]:
    """What the script may want to know; the stage is where its flag lies."""
    return {
        "COMPILEGATE_STAGE": stage,
        "COMPILEGATE_RUN": begun.run,
        "COMPILEGATE_ARM": arm.name,
        "COMPILEGATE_WHY": attempt.why(begun),
        **({"COMPILEGATE_DECISION_ID": decision_id} if decision_id else {}),
    }
