"""Where the jobs of this deployment run and where their data lies."""

from __future__ import annotations

from compilegate.domain.request.context import JobContext
from compilegate.ports import Services


def job_context(services: Services, *, trial: str, execution: str, source_key: str) -> JobContext:
    """The context of one trial's jobs, or of one production run's: then ``trial`` is its id."""
    settings = services.settings
    return JobContext(
        bucket=services.store.bucket,
        region=settings.region,
        role_arn=settings.training_role_arn,
        trial=trial,
        execution=execution,
        source_key=source_key,
        kms_key_arn=settings.kms_key_arn,
        subnet_ids=settings.subnet_ids,
        security_group_ids=settings.security_group_ids,
    )
