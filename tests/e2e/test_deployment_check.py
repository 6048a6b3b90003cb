"""The account that the embedded cloud is, examined by the same calls as an account of AWS."""

from __future__ import annotations

import uuid

import pytest

from compilegate_checkup.account import Account, find_reasons
from compilegate_checkup.reading import deployed_vpc, read_network
from compilegate_checkup.rules import Demand, VpcSetting, examine_network
from tests.e2e.conftest import App

pytestmark = pytest.mark.e2e


def test_the_deployed_stage_has_everything_a_trial_needs(app: App) -> None:
    account = Account("local", "us-east-1", app.client, local=True)
    demand = Demand("bert", "ml.g5.xlarge", 1)

    assert [] == [one.code for one in find_reasons(account, [demand])]
    assert deployed_vpc(app.client("lambda"), "local") is None


def test_a_vpc_without_an_endpoint_or_an_open_group_until_it_has_both(app: App) -> None:
    ec2 = app.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(
        VpcId=vpc, GroupName=f"jobs-{uuid.uuid4().hex[:6]}", Description="training jobs"
    )["GroupId"]
    setting, pair = VpcSetting((subnet,), (group,)), Demand("bert", "ml.g5.xlarge", 2)

    before = examine_network(read_network(ec2, setting), [pair])
    assert ["vpc_no_route_to_s3", "vpc_group_closed_to_itself", "vpc_no_internet"] == [
        one.code for one in before
    ]

    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_vpc_endpoint(
        VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", VpcEndpointType="Gateway",
        RouteTableIds=[table],
    )  # fmt: skip

    assert ["vpc_no_internet"] == [
        one.code for one in examine_network(read_network(ec2, setting), [pair])
    ]
