"""Whether training jobs can work in a VPC: what the network is, and what is wrong with it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compilegate.domain.deployment.rules import reason
from compilegate.domain.reasons import Reason, Severity

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
