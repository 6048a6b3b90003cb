"""Where the jobs of this deployment run, and which of their requests SageMaker would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.speed_jobs import node_groups
from compilegate.domain.request.build import quality_request, speed_request
from compilegate.domain.request.problems import problem_of, problems, unsupported_fields
from compilegate.domain.request.sections import JobContext, uploaded
from compilegate.domain.workload.limits import check_script_arguments
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services, Settings

# What a trial knows only later, at its longest.
_BUCKET = "b" * 63
_DIGEST = "d" * 64
_EXECUTION = "arn:aws:states:us-gov-west-1:123456789012:execution:" + "e" * 161
_ROUND = 10**naming.ROUND_DIGITS - 1
_SEED = 10**naming.SEED_DIGITS - 1
_BLOCK = 10


@dataclass(frozen=True)
class JobSite:
    """Where jobs of a deployment run, and the bucket where their data lies."""

    bucket: str
    settings: Settings

    @classmethod
    def of(cls, services: Services) -> JobSite:
        """That of a deployment's services."""
        return cls(services.store.bucket, services.settings)

    def context(self, workload: str, *, trial: str, execution: str, source_key: str) -> JobContext:
        """The context of a trial's jobs, or of a production run's: then ``trial`` is its id."""
        return JobContext(
            bucket=self.bucket,
            region=self.settings.region,
            role_arn=self.settings.role_of(workload),
            trial=trial,
            execution=execution,
            source_key=source_key,
            kms_key_arn=self.settings.kms_key_arn,
            subnet_ids=self.settings.subnet_ids,
            security_group_ids=self.settings.security_group_ids,
        )


def check_request(request: Mapping[str, Any]) -> None:
    """Raises InvalidInputError with the first thing that the service would refuse.

    SageMaker's own limits come first, then the fields that Step Functions does not pass on.
    """
    for problem in problems(request, _model()):
        raise problem
    for violation in unsupported_fields(_step_functions_fields(), request):
        raise problem_of(violation)


@cache
def _model() -> dict[str, Any]:
    from compilegate.facts import read  # noqa: PLC0415 — no Lambda pays for facts on its start

    return read("create_training_job")


@cache
def _step_functions_fields() -> frozenset[str]:
    from compilegate.facts import step_functions_fields  # noqa: PLC0415 — as above

    return step_functions_fields()


def refused_request(
    workload: Workload, arms: Sequence[ArmPlan], settings: Settings, *, steps: int
) -> str | None:
    """Why the service would refuse a job of this plan, None where it would not.

    Every kind of job is built with the longest names that the trial may give it.
    """
    try:
        check_script_arguments(workload)
        for request in _rehearsed(workload, arms, settings, steps):
            check_request(request)
    except InvalidInputError as error:
        return str(error.each[0])  # a reason is one sentence
    return None


def _rehearsed(
    workload: Workload, arms: Sequence[ArmPlan], settings: Settings, steps: int
) -> Iterator[dict[str, Any]]:
    context = JobSite(_BUCKET, settings).context(
        workload.name,
        trial="t" * naming.TRIAL_ID_LENGTH,
        execution=_EXECUTION,
        source_key=naming.source_key(workload.name, _DIGEST),
    )
    registered = uploaded(workload, context, _DIGEST)
    for index, group in enumerate(node_groups(arms)):
        yield speed_request(
            registered, group, run=naming.speed_run(_ROUND, index, _BLOCK), first_block=_BLOCK,
            blocks=1, steps=steps, context=context,
        )  # fmt: skip
    for index, arm in enumerate(arms):
        yield quality_request(
            registered, arm, run=naming.quality_run(_ROUND, index, _SEED), replicate=_ROUND,
            seed=_SEED, context=context,
        )  # fmt: skip
