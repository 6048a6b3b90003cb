"""Log groups that end: every one has a retention and goes with the stack."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.settings import LOG_RETENTION_DAYS, Settings

# Both in ascending order; CDK's names carry no number. Its last one, INFINITE, is not offered.
RETENTION = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))


FUNCTIONS = "/aws/lambda/"
# The prefix keeps a group out of the account's limit on log policies.
MACHINES = "/aws/vendedlogs/states/"
LOG_GROUP_PREFIXES = (FUNCTIONS, MACHINES)


def log_group(
    scope: Construct, construct_id: str, *, name: str, settings: Settings, key: kms.IKey | None
) -> logs.LogGroup:
    """A log group with the deployment's retention, encrypted with ``key`` where there is one."""
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        retention=RETENTION[settings.log_retention_days],
        removal_policy=RemovalPolicy.DESTROY,
        encryption_key=key,
    )
