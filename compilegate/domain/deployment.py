"""Whether a deployment can work: its network, its account, and every code of what can be wrong.

The registry of reasons (``reasons.toml``) describes codes whose fix and source differ from case
to case. Here every code has one of each, so its table holds the whole reason but the message.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.reasons import Reason, Severity

TRAIN_VPC = "https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html"
BOOTSTRAPPING = "https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping.html"
INTERNET_GATEWAY_GUIDE = (
    "https://docs.aws.amazon.com/vpc/latest/userguide/VPC_Internet_Gateway.html"
)
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


# Whether training jobs can work in a VPC: what the network is, and what is wrong with it.

# Private addresses that one training instance takes, without and with an Elastic Fabric Adapter:
# https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html
ADDRESSES, ADDRESSES_WITH_EFA = 2, 5
# Services that training code calls most often beside S3. SageMaker itself pulls the image and
# writes the log outside of the VPC.
OFTEN_CALLED = ("sagemaker.api", "sts", "logs", "ecr.api", "ecr.dkr", "kms")
ANYWHERE = "0.0.0.0/0"
INTERNET_GATEWAY = "igw-"
ALL_TRAFFIC = "-1"


@dataclass(frozen=True)
class Route:
    """One route: a CIDR block, or the id of a prefix list, and the id of what it leads to."""

    destination: str
    target: str


@dataclass(frozen=True)
class Subnet:
    """A subnet with the routes of its route table; ``cidr`` is its block of IPv4 addresses."""

    subnet_id: str
    vpc_id: str
    cidr: str
    free_addresses: int
    route_table_id: str
    routes: tuple[Route, ...] = ()

    @property
    def reaches_the_internet(self) -> bool:
        """Whether private addresses get out: an internet gateway serves public ones only."""
        return any(
            route.destination == ANYWHERE and not route.target.startswith(INTERNET_GATEWAY)
            for route in self.routes
        )


@dataclass(frozen=True)
class Permission:
    """What a security group lets through; ``protocol`` is "-1" for all traffic.

    Ports are None where the protocol has none.
    """

    protocol: str
    from_port: int | None = None
    to_port: int | None = None
    groups: tuple[str, ...] = ()
    cidrs: tuple[str, ...] = ()
    prefix_lists: tuple[str, ...] = ()

    def allows_port(self, port: int) -> bool:
        """Whether TCP connections to a port are let through."""
        if self.protocol == ALL_TRAFFIC:
            return True
        if self.protocol != "tcp" or self.from_port is None or self.to_port is None:
            return False
        return self.from_port <= port <= self.to_port

    @property
    def allows_every_port(self) -> bool:
        """Whether TCP connections to any port are let through."""
        return self.allows_port(1024) and self.allows_port(65535)


@dataclass(frozen=True)
class SecurityGroup:
    """A security group with its rules."""

    group_id: str
    vpc_id: str
    inbound: tuple[Permission, ...] = ()
    outbound: tuple[Permission, ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """A VPC endpoint that is available; ``service`` without region, such as ``s3``.

    A gateway endpoint has ``route_table_ids``; an interface endpoint answers under the service's
    own name where it has private DNS.
    """

    service: str
    is_gateway: bool
    route_table_ids: tuple[str, ...] = ()
    private_dns: bool = False


@dataclass(frozen=True)
class Network:
    """What ``vpc`` of cdk.json names, as it is. Ids that do not exist are ``missing``.

    ``tenancy`` and ``dns`` are the VPC's, and so are the endpoints.
    """

    subnets: tuple[Subnet, ...]
    groups: tuple[SecurityGroup, ...]
    endpoints: tuple[Endpoint, ...] = ()
    tenancy: str = "default"
    dns: bool = True
    missing_subnets: tuple[str, ...] = ()
    missing_groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demand:
    """One training job's instances; ``efa`` where the type has an Elastic Fabric Adapter."""

    workload: str
    instance_type: str
    instances: int
    efa: bool = False

    @property
    def addresses(self) -> int:
        """Private addresses that the job takes."""
        return self.instances * (ADDRESSES_WITH_EFA if self.efa else ADDRESSES)


def examine_network(network: Network, demands: Sequence[Demand]) -> list[Reason]:
    """What is wrong with the network for these jobs; without any, for the smallest job."""
    return [
        *_missing(network),
        *_one_vpc(network),
        *_addresses(network.subnets, demands),
        *_to_s3(network),
        *_between_instances(network, demands),
        *_outbound(network),
        *_no_internet(network),
    ]


def _missing(network: Network) -> Iterator[Reason]:
    if network.missing_subnets:
        yield reason("vpc_subnet_missing", f"{_list(network.missing_subnets)} not found")
    if network.missing_groups:
        yield reason("vpc_group_missing", f"{_list(network.missing_groups)} not found")


def _one_vpc(network: Network) -> Iterator[Reason]:
    vpcs = {subnet.vpc_id for subnet in network.subnets}
    vpcs |= {group.vpc_id for group in network.groups}
    if len(vpcs) > 1:
        yield reason("vpc_several", f"subnets and security groups are of {_list(sorted(vpcs))}")
    if network.tenancy != "default":
        message = f"the VPC has {network.tenancy} tenancy, which training jobs cannot use"
        yield reason("vpc_dedicated", message)
    if not network.dns:
        yield reason("vpc_no_dns", "the VPC does not resolve DNS names, including that of S3")


def _addresses(subnets: Sequence[Subnet], demands: Sequence[Demand]) -> Iterator[Reason]:
    """SageMaker puts a job's network interfaces into one of the subnets."""
    most = max(demands, key=lambda demand: demand.addresses, default=None)
    needed = ADDRESSES if most is None else most.addresses
    what = "a job of one instance" if most is None else _job(most)
    small = [subnet for subnet in subnets if subnet.free_addresses < needed]
    if not small:
        return
    free = ", ".join(f"{subnet.subnet_id} has {subnet.free_addresses} free" for subnet in small)
    code = "vpc_too_few_addresses" if len(small) == len(subnets) else "vpc_small_subnet"
    yield reason(code, f"{what} needs {needed} addresses; {free}")


def _to_s3(network: Network) -> Iterator[Reason]:
    endpoints = [endpoint for endpoint in network.endpoints if endpoint.service == "s3"]
    tables = {table for endpoint in endpoints for table in endpoint.route_table_ids}
    by_name = any(not endpoint.is_gateway and endpoint.private_dns for endpoint in endpoints)
    cut_off = [
        subnet.subnet_id
        for subnet in network.subnets
        if not (by_name or subnet.route_table_id in tables or subnet.reaches_the_internet)
    ]
    if cut_off:
        message = (
            f"{_list(cut_off)} have no route to S3: jobs can neither read their data and code nor "
            "save a model"
        )
        yield reason("vpc_no_route_to_s3", message)


def _between_instances(network: Network, demands: Sequence[Demand]) -> Iterator[Reason]:
    """What jobs of several instances need; a warning where no such job is named."""
    several = [demand for demand in demands if demand.instances > 1]
    inbound = [rule for group in network.groups for rule in group.inbound]
    if not network.groups or (demands and not several):
        return
    own = {group.group_id for group in network.groups}
    if not any(rule.allows_every_port and _from_job(rule, own, network) for rule in inbound):
        who = _job(several[0]) if several else "a job of several instances"
        message = f"{who} cannot work: no security group lets the instances of a job communicate"
        severity = Severity.BLOCK if several else Severity.WARN
        yield reason("vpc_group_closed_to_itself", message, severity=severity)
        return
    efa = next((demand for demand in several if demand.efa), None)
    outbound = [rule for group in network.groups for rule in group.outbound]
    if efa and not (_all_to_itself(inbound, own) and _all_to_itself(outbound, own)):
        message = (
            f"{_job(efa)} uses an Elastic Fabric Adapter, which needs rules for all traffic in "
            "both directions that name the group itself"
        )
        yield reason("vpc_group_closed_to_efa", message)


def _from_job(rule: Permission, own: set[str], network: Network) -> bool:
    if own & set(rule.groups):
        return True
    blocks = [ipaddress.ip_network(cidr) for cidr in rule.cidrs]
    subnets = [ipaddress.ip_network(subnet.cidr) for subnet in network.subnets]
    return bool(blocks) and all(
        any(subnet.version == block.version and subnet.subnet_of(block) for block in blocks)  # type: ignore[arg-type]
        for subnet in subnets
    )


def _all_to_itself(rules: Iterable[Permission], own: set[str]) -> bool:
    return any(rule.protocol == ALL_TRAFFIC and own & set(rule.groups) for rule in rules)


def _outbound(network: Network) -> Iterator[Reason]:
    rules = [rule for group in network.groups for rule in group.outbound]
    if network.groups and not any(
        rule.allows_port(443) and (rule.cidrs or rule.prefix_lists) for rule in rules
    ):
        yield reason("vpc_no_outbound", "no security group lets instances connect to port 443")


def _no_internet(network: Network) -> Iterator[Reason]:
    closed = [one.subnet_id for one in network.subnets if not one.reaches_the_internet]
    if not closed:
        return
    present = {one.service for one in network.endpoints if one.private_dns}
    missing = [service for service in OFTEN_CALLED if service not in present]
    without = f"; without an interface endpoint: {', '.join(missing)}" if missing else ""
    yield reason("vpc_no_internet", f"{_list(closed)} cannot reach the internet{without}")


def _job(demand: Demand) -> str:
    return f"{demand.workload} ({demand.instances} x {demand.instance_type})"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)


# Whether the account is ready: bootstrapped, deployed, role and quotas in place.

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
