"""Checks, before the CDK starts Node, that Step Functions passes on what jobs need."""

from __future__ import annotations

from compilegate.domain.deployment_settings import Settings
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request.build import JobSite, sample_requests
from compilegate.domain.request.launcher import unsupported_fields
from compilegate.facts import step_functions_fields


def check_job_fields(settings: Settings) -> None:
    """Refuse, at synthesis, a request field that Step Functions would not pass on to SageMaker.

    The state machines take each request as one expression, so Step Functions itself sees its
    fields only when the state runs. Raises InvalidInputError with the first such field.
    """
    vpc = settings.vpc
    site = JobSite(
        stage=settings.stage, bucket="bucket", region=settings.region, job_roles="role",
        kms_key_arn="key", subnet_ids=vpc.subnet_ids if vpc else (),
        security_group_ids=vpc.security_group_ids if vpc else (),
    )  # fmt: skip
    context = site.context(
        "workload", trial="trial", execution="execution", source_key="source.tar.gz"
    )
    for request in sample_requests(context):
        for violation in unsupported_fields(step_functions_fields(), request):
            raise InvalidInputError(
                violation.rule,
                field=violation.path,
                value=violation.value,
                fix="leave it out of the request, or add it to "
                "compilegate/facts/step_functions_fields.json with a source",
            )
