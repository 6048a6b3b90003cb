"""Reads what a deployment depends on from an AWS account; changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from compilegate.adapters.stores import listed, unless
from compilegate.domain.naming import stack_name
from compilegate_checkup.rules import (
    Bucket,
    Endpoint,
    Network,
    Permission,
    Route,
    SecurityGroup,
    Subnet,
    VpcSetting,
)

# Where CDK's bootstrap stack writes its version, and the qualifier of CDK's default synthesizer.
BOOTSTRAP_PARAMETER = "/cdk-bootstrap/{qualifier}/version"
DEFAULT_QUALIFIER = "hnb659fds"
# What S3 encrypts with for every role of the account.
MANAGED_KEY = "alias/aws/s3"
# Filters, and the field that each is about.
FILTERS = {"subnet-id": "SubnetId", "group-id": "GroupId", "vpc-id": "VpcId"}
# What a route may lead to, in DescribeRouteTables.
TARGETS = (
    "GatewayId", "NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId",
    "VpcPeeringConnectionId", "LocalGatewayId", "CarrierGatewayId", "CoreNetworkArn",
    "EgressOnlyInternetGatewayId",
)  # fmt: skip


def bootstrap_version(ssm: Any, qualifier: str | None) -> int | None:
    """Version of CDK's bootstrap stack, None where the region of the account has none."""
    name = BOOTSTRAP_PARAMETER.format(qualifier=qualifier or DEFAULT_QUALIFIER)
    answer = unless(("ParameterNotFound",), ssm.get_parameter, Name=name)
    return None if answer is None else int(answer["Parameter"]["Value"])


def role(iam: Any, role_arn: str) -> Mapping[str, Any] | None:
    """A role as IAM describes it, None where it does not exist."""
    answer = unless(("NoSuchEntity",), iam.get_role, RoleName=role_arn.rpartition("/")[2])
    described: Mapping[str, Any] | None = answer and answer["Role"]
    return described


def bucket(s3: Any, name: str) -> Bucket | None:
    """What a bucket does with objects, None where it is not there or not the account's to read."""
    head = unless(("404", "NoSuchBucket", "301", "PermanentRedirect"), s3.head_bucket, Bucket=name)
    if not head:
        return None
    encryption = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]
    default = encryption["Rules"][0]["ApplyServerSideEncryptionByDefault"]
    key = str(default.get("KMSMasterKeyID", ""))
    rules = unless(
        ("NoSuchLifecycleConfiguration",), s3.get_bucket_lifecycle_configuration, Bucket=name
    )
    expiring = [
        rule.get("Filter", {}).get("Prefix", rule.get("Prefix", ""))
        for rule in (rules or {}).get("Rules", ())
        if {"Days", "Date"} & {*rule.get("Expiration", ())}
        and rule["Status"] == "Enabled"
        and {*rule.get("Filter", ())} <= {"Prefix"}
    ]
    return Bucket(
        region=str(head.get("BucketRegion") or s3.meta.region_name),
        versioned=s3.get_bucket_versioning(Bucket=name).get("Status") == "Enabled",
        key="" if key.endswith(MANAGED_KEY) else key,
        expiring=tuple(expiring),
    )


def role_quota(iam: Any) -> tuple[int, int]:
    """Roles of the account, and how many it may have."""
    summary = iam.get_account_summary()["SummaryMap"]
    return int(summary["Roles"]), int(summary["RolesQuota"])


def has_function(lambda_: Any, arn: str) -> bool:
    """Whether a Lambda function exists."""
    missing = ("ResourceNotFoundException",)
    return bool(unless(missing, lambda_.get_function_configuration, FunctionName=arn))


def has_policy(iam: Any, policy_arn: str) -> bool:
    """Whether a managed policy exists."""
    return bool(unless(("NoSuchEntity",), iam.get_policy, PolicyArn=policy_arn))


def deployed_vpc(lambda_: Any, stage: str) -> VpcSetting | None:
    """The VPC setting that the stage's functions were deployed with, None for none."""
    # The function that plans a trial; all of them have the same settings.
    name = f"{stack_name(stage)}-plan-trial"
    configuration = lambda_.get_function_configuration(FunctionName=name)
    settings = json.loads(configuration["Environment"]["Variables"]["SETTINGS"])
    vpc = settings.get("vpc")
    if not vpc:
        return None
    return VpcSetting(tuple(vpc["subnet_ids"]), tuple(vpc["security_group_ids"]))


def read_network(ec2: Any, setting: VpcSetting) -> Network:
    """Subnets with their routes, groups with their rules, and the VPC's endpoints."""
    subnets = _all(ec2, "describe_subnets", "Subnets", "subnet-id", setting.subnet_ids)
    groups = _all(
        ec2, "describe_security_groups", "SecurityGroups", "group-id", setting.security_group_ids
    )
    vpcs = sorted({str(one["VpcId"]) for one in (*subnets, *groups)})
    tables = _all(ec2, "describe_route_tables", "RouteTables", "vpc-id", vpcs)
    endpoints = _all(ec2, "describe_vpc_endpoints", "VpcEndpoints", "vpc-id", vpcs)
    vpc_rows = _all(ec2, "describe_vpcs", "Vpcs", "vpc-id", vpcs)
    tenancies = {str(vpc.get("InstanceTenancy", "default")) for vpc in vpc_rows}
    resolving = [
        ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsSupport") for vpc in vpcs
    ]
    there = {one["SubnetId"] for one in subnets} | {one["GroupId"] for one in groups}
    return Network(
        subnets=tuple(_subnet(one, _table_of(one, tables)) for one in subnets),
        groups=tuple(
            SecurityGroup(
                group_id=one["GroupId"],
                vpc_id=one["VpcId"],
                inbound=tuple(map(_permission, one.get("IpPermissions", ()))),
                outbound=tuple(map(_permission, one.get("IpPermissionsEgress", ()))),
            )
            for one in groups
        ),
        endpoints=tuple(
            _endpoint(one) for one in endpoints if str(one.get("State", "")).lower() == "available"
        ),
        tenancy=min(tenancies - {"default"}, default="default"),
        dns=all(bool(answer["EnableDnsSupport"]["Value"]) for answer in resolving),
        missing_subnets=tuple(one for one in setting.subnet_ids if one not in there),
        missing_groups=tuple(one for one in setting.security_group_ids if one not in there),
    )


def _all(
    ec2: Any, operation: str, key: str, name: str, values: Iterable[str]
) -> list[dict[str, Any]]:
    """By filter: unlike ids, those that do not exist are left out and no error.

    Not every endpoint that speaks EC2's protocol knows every filter, so the answer is checked.
    """
    filter_values = list(values)
    if not filter_values:
        return []
    rows = listed(ec2, operation, key, Filters=[{"Name": name, "Values": filter_values}])
    return [one for one in rows if one.get(FILTERS[name]) in filter_values]


def _table_of(subnet: Mapping[str, Any], tables: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The subnet's own route table, else the main one of its VPC."""
    main: Mapping[str, Any] = {}
    for table in tables:
        for association in table.get("Associations", ()):
            if association.get("SubnetId") == subnet["SubnetId"]:
                return table
            if association.get("Main") and table.get("VpcId") == subnet["VpcId"]:
                main = table
    return main


def _subnet(subnet: Mapping[str, Any], table: Mapping[str, Any]) -> Subnet:
    routes = []
    for route in table.get("Routes", ()):
        destination = route.get("DestinationCidrBlock") or route.get("DestinationPrefixListId")
        target = next((route[key] for key in TARGETS if route.get(key)), "")
        if destination and route.get("State", "active") == "active":
            routes.append(Route(str(destination), str(target)))
    return Subnet(
        subnet_id=subnet["SubnetId"],
        vpc_id=subnet["VpcId"],
        cidr=subnet["CidrBlock"],
        free_addresses=int(subnet["AvailableIpAddressCount"]),
        route_table_id=str(table.get("RouteTableId", "")),
        routes=tuple(routes),
    )


def _permission(rule: Mapping[str, Any]) -> Permission:
    return Permission(
        protocol=str(rule["IpProtocol"]),
        from_port=rule.get("FromPort"),
        to_port=rule.get("ToPort"),
        groups=tuple(pair["GroupId"] for pair in rule.get("UserIdGroupPairs", ())),
        cidrs=tuple(one["CidrIp"] for one in rule.get("IpRanges", ())),
        prefix_lists=tuple(one["PrefixListId"] for one in rule.get("PrefixListIds", ())),
    )


def _endpoint(endpoint: Mapping[str, Any]) -> Endpoint:
    # com.amazonaws.us-east-1.ecr.api; in some partitions with a prefix before it
    service = str(endpoint["ServiceName"]).partition("com.amazonaws.")[2]
    return Endpoint(
        service=service.partition(".")[2] or service,  # com.amazonaws.iam has no region
        is_gateway=endpoint.get("VpcEndpointType") == "Gateway",
        route_table_ids=tuple(endpoint.get("RouteTableIds", ())),
        private_dns=bool(endpoint.get("PrivateDnsEnabled")),
    )
