"""What can be wrong with a deployment: severity, fix and source of every code.

The registry of reasons (``reasons.toml``) describes codes whose fix and source differ from case
to case. Here every code has one of each, so this table holds the whole reason but its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compilegate.domain.reasons import Reason, Severity

TRAIN_VPC = "https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html"
BOOTSTRAPPING = "https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping.html"
INTERNET_GATEWAY = "https://docs.aws.amazon.com/vpc/latest/userguide/VPC_Internet_Gateway.html"
VPC_CONFIG = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_VpcConfig.html"
VPC_DNS = "https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html"
QUOTAS = "https://docs.aws.amazon.com/general/latest/gr/sagemaker.html"
ROLES = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html"

SUBNETS, GROUPS = "vpc.subnet_ids", "vpc.security_group_ids"


@dataclass(frozen=True)
class Rule:
    """One code; ``field`` is a key of cdk.json's context, or the part of the deployment."""

    severity: Severity
    field: str
    fix: str
    source: str


RULES: Mapping[str, Rule] = {
    "bootstrap_missing": Rule(
        Severity.BLOCK, "bootstrap", "prepare it, once per account and region:\nmake bootstrap",
        BOOTSTRAPPING,
    ),
    "bootstrap_too_old": Rule(
        Severity.BLOCK, "bootstrap", "bring it up to date:\nmake bootstrap", BOOTSTRAPPING,
    ),
    "not_deployed": Rule(
        Severity.WARN, "stack", "deploy it:\nmake deploy", "docs/operating.md",
    ),
    "vpc_not_deployed": Rule(
        Severity.WARN, "vpc", "restore the setting in cdk.json, or deploy it:\nmake deploy",
        "docs/operating.md",
    ),
    "role_not_assumable": Rule(
        Severity.BLOCK, "JobRoles",
        "restore its trust policy for sagemaker.amazonaws.com, or delete the role: the next run "
        "makes it again", ROLES,
    ),
    "quota_too_small": Rule(
        Severity.BLOCK, "training.instance_type",
        "request an increase of the quota in Service Quotas, or name another instance type",
        QUOTAS,
    ),
    "quota_unknown": Rule(
        Severity.INFO, "training.instance_type",
        "look it up in Service Quotas; to read it here the credentials need "
        "servicequotas:GetServiceQuota and servicequotas:ListServiceQuotas",
        QUOTAS,
    ),
    "vpc_subnet_missing": Rule(
        Severity.BLOCK, SUBNETS, "name subnets of this account and region", VPC_CONFIG,
    ),
    "vpc_group_missing": Rule(
        Severity.BLOCK, GROUPS, "name security groups of this account and region", VPC_CONFIG,
    ),
    "vpc_several": Rule(
        Severity.BLOCK, "vpc", "name subnets and security groups of one VPC", VPC_CONFIG,
    ),
    "vpc_dedicated": Rule(
        Severity.BLOCK, SUBNETS, "name subnets of a VPC with default tenancy", TRAIN_VPC,
    ),
    "vpc_no_dns": Rule(
        Severity.BLOCK, "vpc", "set enableDnsSupport of the VPC to true", VPC_DNS,
    ),
    "vpc_no_route_to_s3": Rule(
        Severity.BLOCK, SUBNETS,
        "create a gateway endpoint for S3 and add it to the route tables of these subnets",
        TRAIN_VPC,
    ),
    "vpc_no_outbound": Rule(
        Severity.BLOCK, GROUPS, "allow outbound connections to port 443, at least to S3",
        TRAIN_VPC,
    ),
    "vpc_group_closed_to_itself": Rule(
        Severity.BLOCK, GROUPS,
        "add an inbound rule to a group: all traffic, source the group itself", TRAIN_VPC,
    ),
    "vpc_group_closed_to_efa": Rule(
        Severity.BLOCK, GROUPS,
        "add an inbound and an outbound rule: all traffic, from and to the group itself",
        TRAIN_VPC,
    ),
    "vpc_too_few_addresses": Rule(
        Severity.BLOCK, SUBNETS, "name larger subnets, or free addresses in these", TRAIN_VPC,
    ),
    "vpc_small_subnet": Rule(
        Severity.WARN, SUBNETS, "name larger subnets, so that each of them can hold a job",
        TRAIN_VPC,
    ),
    "vpc_no_internet": Rule(
        Severity.INFO, SUBNETS,
        "nothing to do for scripts that use S3 alone; for a script that calls another AWS service "
        "create an interface endpoint for that service; for one that installs packages or "
        "downloads models add a NAT gateway, or put them in the image or an input channel",
        TRAIN_VPC,
    ),
    "not_checked": Rule(
        Severity.INFO, "deployment", "use credentials that may make this call", "docs/operating.md",
    ),
}  # fmt: skip


def reason(code: str, message: str, *, severity: Severity | None = None) -> Reason:
    """The reason of one code; a ``severity`` replaces the rule's."""
    rule = RULES[code]
    return Reason(code, message, None, severity or rule.severity, rule.field, rule.fix, rule.source)
