"""Whether the account is ready: bootstrapped, deployed, role and quotas in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.deployment.network import Demand
from compilegate.domain.deployment.rules import reason
from compilegate.domain.reasons import Reason

# What the template's own rule CheckBootstrapVersion demands.
OLDEST_BOOTSTRAP = 6
SAGEMAKER = "sagemaker.amazonaws.com"


@dataclass(frozen=True)
class VpcSetting:
    """Subnets and security groups that jobs use."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]


def examine_bootstrap(version: int | None, place: str) -> Iterator[Reason]:
    """``version`` of the bootstrap stack in ``place``, None where there is none."""
    if version is None:
        yield reason("bootstrap_missing", f"{place} is not prepared for CDK deployments")
    elif version < OLDEST_BOOTSTRAP:
        message = f"{place} was prepared by an old CDK (version {version})"
        yield reason("bootstrap_too_old", f"{message}; {OLDEST_BOOTSTRAP} or later is needed")


def examine_role(trust: Mapping[str, Any] | None, arn: str) -> Iterator[Reason]:
    """``trust`` is the role's trust policy, None where no job of its workload has needed it yet."""
    if trust is not None and SAGEMAKER not in set(_trusted(trust)):
        yield reason("role_not_assumable", f"{arn} cannot be assumed by {SAGEMAKER}")


def examine_quotas(quotas: Mapping[str, int | None], demands: Sequence[Demand]) -> Iterator[Reason]:
    """``quotas`` are instances that training jobs may use at once, None where unknown."""
    for demand in demands:
        quota = quotas.get(demand.instance_type)
        if quota is None:
            yield reason(
                "quota_unknown",
                f"the quota for {demand.instance_type} could not be read, so whether "
                f"{demand.workload} may use {demand.instances} is unknown",
            )
        elif quota < demand.instances:
            yield reason(
                "quota_too_small",
                f"{demand.workload} uses {demand.instances} x {demand.instance_type} for one job, "
                f"but the account may use only {quota} at once",
            )


def examine_setting(configured: VpcSetting | None, deployed: VpcSetting | None) -> Iterator[Reason]:
    """Whether what cdk.json says is what was deployed."""
    if configured != deployed:
        yield reason(
            "vpc_not_deployed",
            f"cdk.json has {_words(configured)}, but {_words(deployed)} is deployed",
        )


def _trusted(trust: Mapping[str, Any]) -> Iterator[str]:
    statements = trust.get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        service = statement.get("Principal", {}).get("Service", ())
        if statement.get("Effect") == "Allow":
            yield from [service] if isinstance(service, str) else service


def _words(setting: VpcSetting | None) -> str:
    if setting is None:
        return "no VPC"
    return ", ".join((*setting.subnet_ids, *setting.security_group_ids))
