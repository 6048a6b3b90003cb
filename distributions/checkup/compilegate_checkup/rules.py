"""Whether a deployment can work: its network, its account, and what can be wrong with either.

The registry of reasons (``reasons.toml``) describes codes whose fix and source differ from case
to case. Here every code has one of each, so ``rules.toml`` holds the whole reason.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilegate.domain.deployment_settings import Settings
from compilegate.domain.naming import COMPILE_CACHE_PREFIX, EXPERIMENTS_PREFIX, ROLE_TAG_WORKLOAD
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.wording import fill, sentences

FILE = Path(__file__).with_suffix(".toml")


def reason(code: str, *, severity: Severity | None = None, **values: Any) -> Reason:
    """The reason of one code; a ``severity`` replaces that of the code."""
    says = sentences(FILE)[code]
    return Reason(
        code, fill(says["message"], values), severity=severity or Severity(says["severity"]),
        field=says["field"], fix=says["fix"], source=says["source"],
    )  # fmt: skip


# Whether training jobs can work in a VPC: what the network is, and what is wrong with it.

# Private addresses that one training instance takes, without and with an Elastic Fabric Adapter:
# https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html
ADDRESSES, ADDRESSES_WITH_EFA = 2, 5
# Services that training code calls most often beside S3. SageMaker itself pulls the image and
# writes the log outside of the VPC.
OFTEN_CALLED = ("sagemaker.api", "sts", "logs", "ecr.api", "ecr.dkr", "kms")
# Services that functions call, which a gateway endpoint or an interface endpoint reaches, and those
# that an interface endpoint alone does.
GATEWAYS = ("s3", "dynamodb")
INTERFACES = ("ssm", "sagemaker.api", "states", "sns")
# Called by functions that make roles. Its endpoint is of the whole partition, in one region of it:
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam_vpc_endpoint_create.html
OF_ROLES = "iam"
# Called where the deployment sets how long the logs of training jobs are kept.
OF_LOGS = "logs"
ANYWHERE = "0.0.0.0/0"
INTERNET_GATEWAY = "igw-"
ALL_TRAFFIC = "-1"
# Of IPsec: its packets' protocol, and where keys are exchanged.
ESP, IKE_PORT = "50", 500


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

    def allows(self, *ports: int) -> bool:
        """Whether TCP connections to all of these ports are let through."""
        if self.protocol == ALL_TRAFFIC:
            return True
        if self.protocol != "tcp" or self.from_port is None or self.to_port is None:
            return False
        return self.from_port <= min(ports) and max(ports) <= self.to_port


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
    """One training job's instances; ``efa`` where the type has an Elastic Fabric Adapter.

    ``installs``: the container installs packages before the script starts.
    """

    workload: str
    instance_type: str
    instances: int
    efa: bool = False
    installs: bool = False

    @property
    def addresses(self) -> int:
        """Private addresses that the job takes."""
        return self.instances * (ADDRESSES_WITH_EFA if self.efa else ADDRESSES)

    def __str__(self) -> str:
        """The job as messages name it."""
        return f"{self.workload} ({self.instances} x {self.instance_type})"


def examine_network(
    network: Network, demands: Sequence[Demand], *, encrypted: bool = False
) -> list[Reason]:
    """What is wrong with the network for these jobs; without any, for the smallest job.

    ``encrypted``: what the instances of a job send each other is.
    """
    return [
        *_one_vpc(network),
        *_addresses(network.subnets, demands),
        *_to_s3(network),
        *(_between_instances(network, demands) if network.groups else ()),
        *(_encrypted(network, demands) if network.groups and encrypted else ()),
        *_outbound(network),
    ]


def _one_vpc(network: Network) -> Iterator[Reason]:
    vpcs = {subnet.vpc_id for subnet in network.subnets}
    vpcs |= {group.vpc_id for group in network.groups}
    if network.missing_subnets:
        yield reason("vpc_subnet_missing", names=", ".join(network.missing_subnets))
    if network.missing_groups:
        yield reason("vpc_group_missing", names=", ".join(network.missing_groups))
    if len(vpcs) > 1:
        yield reason("vpc_several", names=", ".join(sorted(vpcs)))
    if network.tenancy != "default":
        yield reason("vpc_dedicated", tenancy=network.tenancy)
    if not network.dns:
        yield reason("vpc_no_dns")


def _addresses(subnets: Sequence[Subnet], demands: Sequence[Demand]) -> Iterator[Reason]:
    """SageMaker puts a job's network interfaces into one of the subnets."""
    most = max(demands, key=lambda demand: demand.addresses, default=None)
    needed = ADDRESSES if most is None else most.addresses
    small = [subnet for subnet in subnets if subnet.free_addresses < needed]
    if small:
        code = "vpc_too_few_addresses" if len(small) == len(subnets) else "vpc_small_subnet"
        free = (f"{subnet.subnet_id} has {subnet.free_addresses} free" for subnet in small)
        yield reason(code, job=most or "a job of one instance", needed=needed, free=", ".join(free))


def _cut_off(network: Network, service: str) -> list[str]:
    """The subnets that reach a service neither by an endpoint nor through the internet."""
    endpoints = [endpoint for endpoint in network.endpoints if endpoint.service == service]
    tables = {table for endpoint in endpoints for table in endpoint.route_table_ids}
    by_name = any(not endpoint.is_gateway and endpoint.private_dns for endpoint in endpoints)
    return [
        subnet.subnet_id
        for subnet in network.subnets
        if not (by_name or subnet.route_table_id in tables or subnet.reaches_the_internet)
    ]


def _to_s3(network: Network) -> Iterator[Reason]:
    cut_off = _cut_off(network, "s3")
    if cut_off:
        yield reason("vpc_no_route_to_s3", names=", ".join(cut_off))


def examine_functions_network(
    network: Network, *, makes_roles: bool, keeps_logs: bool
) -> Iterator[Reason]:
    """Whether functions in this network reach the services that they call."""
    yield from _one_vpc(network)
    some = [(makes_roles, OF_ROLES), (keeps_logs, OF_LOGS)]
    needed = (*GATEWAYS, *INTERFACES, *(service for called, service in some if called))
    missing = {service: _cut_off(network, service) for service in needed}
    for service, subnets in missing.items():
        if subnets:
            yield reason("functions_cut_off", service=service, names=", ".join(subnets))


def _between_instances(network: Network, demands: Sequence[Demand]) -> Iterator[Reason]:
    """What jobs of several instances need; a warning where no such job is named."""
    several = [demand for demand in demands if demand.instances > 1]
    if demands and not several:
        return
    inbound = [rule for group in network.groups for rule in group.inbound]
    outbound = [rule for group in network.groups for rule in group.outbound]
    own = {group.group_id for group in network.groups}
    efa = next((demand for demand in several if demand.efa), None)
    if not any(rule.allows(1024, 65535) and _from_job(rule, own, network) for rule in inbound):
        yield reason(
            "vpc_group_closed_to_itself", severity=Severity.BLOCK if several else Severity.WARN,
            job=several[0] if several else "a job of several instances",
        )  # fmt: skip
    elif efa and not (_all_to_itself(inbound, own) and _all_to_itself(outbound, own)):
        yield reason("vpc_group_closed_to_efa", job=efa)


def _encrypted(network: Network, demands: Sequence[Demand]) -> Iterator[Reason]:
    """Jobs of several instances exchange keys and packets of IPsec.

    https://docs.aws.amazon.com/sagemaker/latest/dg/train-encrypt.html
    """
    own = {group.group_id for group in network.groups}
    directions = [
        [rule for group in network.groups for rule in group.inbound if own & set(rule.groups)],
        [rule for group in network.groups for rule in group.outbound],
    ]
    several = [demand for demand in demands if demand.instances > 1]
    if several and not all(_lets_ipsec(rules) for rules in directions):
        yield reason("vpc_group_closed_to_encryption", job=several[0])


def _lets_ipsec(rules: Iterable[Permission]) -> bool:
    protocols = {rule.protocol for rule in rules if rule.protocol != "udp" or _keys(rule)}
    return ALL_TRAFFIC in protocols or {"udp", ESP} <= protocols


def _keys(rule: Permission) -> bool:
    return (rule.from_port or 0) <= IKE_PORT <= (rule.to_port or 0)


def examine_isolation(demands: Sequence[Demand]) -> Iterator[Reason]:
    """What jobs in network isolation cannot do."""
    for demand in demands:
        if demand.installs:
            yield reason("isolated_installs", workload=demand.workload)


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
        rule.allows(443) and (rule.cidrs or rule.prefix_lists) for rule in rules
    ):
        yield reason("vpc_no_outbound")
    closed = [one.subnet_id for one in network.subnets if not one.reaches_the_internet]
    if closed:
        present = {one.service for one in network.endpoints if one.private_dns}
        missing = [service for service in OFTEN_CALLED if service not in present]
        yield reason("vpc_no_internet", names=", ".join(closed), missing=", ".join(missing))


# Whether the account is ready: bootstrapped, deployed, role and quotas in place.

# What the template's own rule CheckBootstrapVersion demands.
OLDEST_BOOTSTRAP = 6
SAGEMAKER = "sagemaker.amazonaws.com"


@dataclass(frozen=True)
class VpcSetting:
    """Subnets and security groups that jobs use."""

    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]

    def __str__(self) -> str:
        """The setting as messages name it."""
        return ", ".join((*self.subnet_ids, *self.security_group_ids))


def examine_bootstrap(version: int | None, place: str) -> Iterator[Reason]:
    """``version`` of the bootstrap stack in ``place``, None where there is none."""
    if version is None:
        yield reason("bootstrap_missing", place=place)
    elif version < OLDEST_BOOTSTRAP:
        yield reason("bootstrap_too_old", place=place, version=version, oldest=OLDEST_BOOTSTRAP)


def examine_role(trust: Mapping[str, Any] | None, arn: str) -> Iterator[Reason]:
    """``trust`` is the role's trust policy, None where no job of its workload has needed it yet."""
    if trust is None:
        return
    statements, trusted = trust.get("Statement", []), set[str]()
    for statement in statements if isinstance(statements, list) else [statements]:
        if statement.get("Effect") == "Allow":
            service = statement.get("Principal", {}).get("Service", ())
            trusted.update([service] if isinstance(service, str) else service)
    if SAGEMAKER not in trusted:
        yield reason("role_not_assumable", arn=arn)


@dataclass(frozen=True)
class JobRole:
    """The role of a workload's jobs, and the tags that the deployment demands of it."""

    arn: str
    workload: str
    provided: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


def examine_job_role(role: Mapping[str, Any] | None, job_role: JobRole) -> Iterator[Reason]:
    """``role`` as IAM describes it, None where there is none: a provided one must be there."""
    if not role:
        if job_role.provided:
            yield reason("role_missing", arn=job_role.arn, workload=job_role.workload)
        return
    yield from examine_role(role["AssumeRolePolicyDocument"], job_role.arn)
    tags = {tag["Key"]: tag["Value"] for tag in role.get("Tags", ())}
    missing = [name for name, value in job_role.tags.items() if tags.get(name) != value]
    if missing:
        yield reason("role_without_tags", arn=job_role.arn, names=", ".join(missing))
    if job_role.provided and tags.get(ROLE_TAG_WORKLOAD) != job_role.workload:
        yield reason(
            "role_not_isolated", arn=job_role.arn, tag=ROLE_TAG_WORKLOAD, workload=job_role.workload
        )


# Of the account's quota of roles: from here on it is said, while there is time to ask for more.
NEARLY = 0.8


def examine_role_quota(used: int, quota: int) -> Iterator[Reason]:
    """Whether the account has room for the roles of further workloads."""
    if used >= NEARLY * quota:
        yield reason("role_quota_near", used=used, quota=quota)


@dataclass(frozen=True)
class Bucket:
    """What a bucket does with objects.

    ``key`` is that of its default encryption, empty for one that AWS owns or manages. ``expiring``
    are prefixes that a lifecycle rule empties.
    """

    region: str
    versioned: bool
    key: str = ""
    expiring: tuple[str, ...] = ()


def examine_bucket(bucket: Bucket | None, settings: Settings) -> Iterator[Reason]:
    """Whether a bucket that exists can be the stack's; None where it is not there."""
    if not bucket or bucket.region != settings.region:
        yield reason("bucket_missing", name=settings.bucket_name, region=settings.region)
        return
    if not bucket.versioned:
        yield reason("bucket_not_versioned", name=settings.bucket_name)
    if bucket.key and not (settings.customer_key or "").endswith(bucket.key):
        yield reason("bucket_other_key", name=settings.bucket_name, key=bucket.key)
    kept = [
        prefix
        for prefix in (EXPERIMENTS_PREFIX, COMPILE_CACHE_PREFIX)
        if not any(prefix.startswith(one) for one in bucket.expiring)
    ]
    if kept:
        yield reason("bucket_without_expiry", name=settings.bucket_name, names=", ".join(kept))


def examine_quotas(quotas: Mapping[str, int | None], demands: Sequence[Demand]) -> Iterator[Reason]:
    """``quotas`` are instances that training jobs may use at once, None where unknown."""
    for demand in demands:
        quota = quotas.get(demand.instance_type)
        code = "quota_unknown" if quota is None else "quota_too_small"
        if quota is None or quota < demand.instances:
            yield reason(code, quota=quota, **vars(demand))


def examine_setting(configured: VpcSetting | None, deployed: VpcSetting | None) -> Iterator[Reason]:
    """Whether what cdk.json says is what was deployed."""
    if configured != deployed:
        nothing = "no VPC"
        yield reason(
            "vpc_not_deployed", configured=configured or nothing, deployed=deployed or nothing
        )
