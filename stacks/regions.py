"""Regions and partitions: what a deployment needs there, by the data that AWS publishes.

Services and partitions are botocore's, which every release of it brings up to date; suffixes are
the CDK's.
"""

from __future__ import annotations

from collections.abc import Iterator

import botocore.session
from botocore.exceptions import UnknownRegionError

from compilegate.domain.deployment_settings import Settings
from compilegate.domain.errors import InvalidInputError

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


def check_region(settings: Settings) -> None:
    """Refuse, at synthesis, what the region does not have; raises InvalidInputError."""
    for field, problem, fix in _problems(settings):
        raise InvalidInputError(problem, field=f"context.{field}", value=settings.region, fix=fix)


def _problems(settings: Settings) -> Iterator[tuple[str, str, str]]:
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
