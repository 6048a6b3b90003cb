"""Where the jobs of this deployment run, and what the services take of their requests."""

from __future__ import annotations

from functools import cache

from compilegate.domain.request.build import JobSite
from compilegate.domain.service_limits import RequestLimits
from compilegate.ports import Settings


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
        tags=settings.tags,
        rules=settings.rules,
    )


@cache
def request_limits() -> RequestLimits:
    """What the services take of a request."""
    from compilegate.facts import read, step_functions_fields  # noqa: PLC0415 — no Lambda pays for facts on its start

    return RequestLimits(read("create_training_job"), step_functions_fields())
