"""Where the jobs of this deployment run, and which of their requests SageMaker would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import ArmPlan, node_groups
from compilegate.domain.request.build import JobSite, quality_request, speed_request, uploaded
from compilegate.domain.service_limits import RequestLimits
from compilegate.domain.workload.limits import check_script_arguments
from compilegate.domain.workload.model import Workload
from compilegate.ports import Settings

# What a trial knows only later, at its longest.
_BUCKET = "b" * 63
_DIGEST = "d" * 64
_EXECUTION = "arn:aws:states:us-gov-west-1:123456789012:execution:" + "e" * 161
_ROUND = 10**naming.ROUND_DIGITS - 1
_SEED = 10**naming.SEED_DIGITS - 1
_BLOCK = 10


def job_site(settings: Settings, bucket: str) -> JobSite:
    """Where jobs of a deployment run whose data lie in this bucket."""
    return JobSite(
        stage=settings.stage,
        bucket=bucket,
        region=settings.region,
        job_roles=settings.job_roles,
        kms_key_arn=settings.kms_key_arn,
        subnet_ids=settings.subnet_ids,
        security_group_ids=settings.security_group_ids,
    )


@cache
def request_limits() -> RequestLimits:
    """What the services take of a request."""
    from compilegate.facts import read, step_functions_fields  # noqa: PLC0415 — no Lambda pays for facts on its start

    return RequestLimits(read("create_training_job"), step_functions_fields())


def refused_request(
    workload: Workload, arms: Sequence[ArmPlan], settings: Settings, *, steps: int
) -> str | None:
    """Why the service would refuse a job of this plan, None where it would not.

    Every kind of job is built with the longest names that the trial may give it.
    """
    try:
        check_script_arguments(workload)
        for request in _rehearsed(workload, arms, settings, steps):
            request_limits().check(request)
    except InvalidInputError as error:
        return str(error.each[0])  # a reason is one sentence
    return None


def _rehearsed(
    workload: Workload, arms: Sequence[ArmPlan], settings: Settings, steps: int
) -> Iterator[dict[str, Any]]:
    context = job_site(settings, _BUCKET).context(
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
