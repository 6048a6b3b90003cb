"""What of the settings does not go together, or not with the region.

Before the CDK starts. Services and partitions are botocore's, which every release of it brings up
to date.
"""

from __future__ import annotations

from collections.abc import Iterator

import botocore.session
from botocore.exceptions import UnknownRegionError

from compilegate.domain.deployment_settings import PROVIDED, Settings
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.workload.names import PRIVATE_IMAGE

# As botocore names them. IAM is one of a partition.
SERVICES = (
    "cloudformation", "cloudwatch", "dynamodb", "ecr", "events", "kms", "lambda", "logs", "s3",
    "sagemaker", "scheduler", "service-quotas", "sns", "sqs", "ssm", "stepfunctions", "xray",
)  # fmt: skip
# AWS Budgets, which is one service of a whole partition.
BUDGETS = "budgets"
# Amazon Q Developer in chat applications, whose endpoints botocore does not list: the partition
# of its regions (https://docs.aws.amazon.com/general/latest/gr/chatbot.html).
CHAT_PARTITION = "aws"
# Settings that hold an ARN.
WITH_ARNS = ("customer_key", "job_role_arn", "permissions_boundary")


# Of IAM, and of a workload.
ROLE_NAME_MAX, WORKLOAD_NAME_MAX = 64, 32


def check_settings(settings: Settings) -> None:
    """Raise InvalidInputError with the first thing that is wrong."""
    for field, problem, fix in (*_conflicts(settings), *_missing_there(settings)):
        raise InvalidInputError(problem, field=f"context.{field}", fix=fix)


def job_role_names(settings: Settings) -> str:
    """What a workload's name completes to the name of the role that functions make for its jobs.

    With the region: IAM's names hold for all regions of an account.
    """
    return f"{settings.role_prefix}{settings.stage}-{settings.region}-"


def _conflicts(settings: Settings) -> Iterator[tuple[str, str, str]]:
    if settings.existing_bucket and not settings.bucket_name:
        yield "existing_bucket", "has no name", "give bucket_name"
    if not settings.stack_key and not settings.customer_key:
        yield "stack_key", "leaves no key for data and messages", "give customer_key"
    private = [one.uri for one in settings.image_overrides if PRIVATE_IMAGE.match(one.uri)]
    if private and not settings.vpc:
        fix = "give `vpc`, through which it is pulled, or use an image of ECR"
        yield "image_overrides", f"holds an image that is not in ECR ({private[0]})", fix
    if bool(settings.job_role_arn) != (settings.job_roles == PROVIDED):
        fix = f"give it together with job_roles: {PROVIDED}, and only then"
        yield "job_role_arn", f"does not go with job_roles: {settings.job_roles}", fix
    excess = len(job_role_names(settings)) + WORKLOAD_NAME_MAX - ROLE_NAME_MAX
    if settings.role_prefix and excess > 0:
        fix = f"use at most {len(settings.role_prefix) - excess} characters, or a shorter stage"
        yield "role_prefix", "leaves a role's name no room for a workload's", fix


def _missing_there(settings: Settings) -> Iterator[tuple[str, str, str]]:
    session, region = botocore.session.Session(), settings.region
    fix = "choose another region; for one that is new, install a newer boto3"
    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError:
        yield "region", "is no region of AWS", fix
        return
    missing = [
        name for name in SERVICES if region not in session.get_available_regions(name, partition)
    ]
    if missing:
        yield "region", f"does not have {', '.join(missing)}", fix
    has_budgets = session.get_available_regions(BUDGETS, partition, allow_non_regional=True)
    if settings.monthly_budget_usd and not has_budgets:
        yield "monthly_budget_usd", "needs AWS Budgets, which the partition lacks", "leave it out"
    if settings.slack and partition != CHAT_PARTITION:
        problem = "needs Amazon Q Developer in chat applications, which the partition lacks"
        yield "slack", problem, "leave it out"
    for name in WITH_ARNS:
        arn = getattr(settings, name)
        if arn and arn.split(":")[1] != partition:
            fix = f"give one that begins with arn:{partition}:"
            yield name, "is an ARN of another partition than the region's", fix
