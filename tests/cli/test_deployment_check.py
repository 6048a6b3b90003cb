"""``doctor --deployment`` against moto's account: real calls, a VPC as people build it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from compilegate.adapters.workload_files import read_workload
from compilegate.domain.errors import NotDeployedError
from compilegate_checkup import account as deployment_check
from compilegate_checkup.reading import BOOTSTRAP_PARAMETER, DEFAULT_QUALIFIER, read_network
from compilegate_checkup.rules import Network, VpcSetting
from tests.cli.project import write_project
from tests.cli.test_connect import cloudformation
from tests.fake_clouds import FakeProviders
from tests.fakes import ROLES

REGION = "us-east-1"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, providers: FakeProviders) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    replaced: dict[str, Any] = {}

    def client(service: str, region: str = REGION) -> Any:
        if service == "cloudformation" and service not in replaced:
            return cloudformation(outputs=None)
        return replaced.get(service) or boto3.client(service, region_name=region)

    client.replaced = replaced  # type: ignore[attr-defined]
    monkeypatch.setattr(providers, "client", client, raising=False)
    with mock_aws():
        yield client


@pytest.fixture
def bootstrapped(aws: Any) -> None:
    bootstrap(aws, DEFAULT_QUALIFIER)


def bootstrap(aws: Any, qualifier: str) -> None:
    name = BOOTSTRAP_PARAMETER.format(qualifier=qualifier)
    aws("ssm").put_parameter(Name=name, Value="30", Type="String")


class Vpc:
    """A private subnet and a security group, as EC2 makes them."""

    def __init__(self, ec2: Any, cidr: str = "10.0.0.0/24") -> None:
        self.ec2 = ec2
        self.id = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=self.id, CidrBlock=cidr)["Subnet"]["SubnetId"]
        self.group = ec2.create_security_group(
            VpcId=self.id, GroupName="jobs", Description="training jobs"
        )["GroupId"]

    @property
    def setting(self) -> VpcSetting:
        return VpcSetting((self.subnet,), (self.group,))

    def open_to_itself(self) -> None:
        pair = {"UserIdGroupPairs": [{"GroupId": self.group}], "IpProtocol": "-1"}
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=[pair])

    def add_s3_endpoint(self) -> str:
        (table,) = self.ec2.describe_route_tables(
            Filters=[{"Name": "vpc-id", "Values": [self.id]}]
        )["RouteTables"]
        self.ec2.create_vpc_endpoint(
            VpcId=self.id, ServiceName=f"com.amazonaws.{REGION}.s3", VpcEndpointType="Gateway",
            RouteTableIds=[table["RouteTableId"]],
        )  # fmt: skip
        return str(table["RouteTableId"])

    def read(self) -> Network:
        return read_network(self.ec2, self.setting)


def configure(folder: Path, vpc: Vpc | None, **more: Any) -> None:
    setting = vpc and {"subnet_ids": [vpc.subnet], "security_group_ids": [vpc.group]}
    context = {"stage": "prod", "region": REGION, "vpc": setting, **more}
    (folder / "cdk.json").write_text(json.dumps({"context": context}))


def severities(result: Any) -> dict[str, str]:
    return {one["code"]: one["severity"] for one in json.loads(result.stdout)["reasons"]}


def test_a_fresh_account_is_reported_to_bootstrap(invoke, aws):
    result = invoke("doctor", "--deployment")

    assert 10 == result.exit_code, result.output
    assert "blocks: us-east-1 is not prepared for CDK deployments" in result.stdout
    assert "\n      make bootstrap\n" in result.stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_before_a_deployment_what_cdk_json_names_is_examined(invoke, aws, bootstrapped, tmp_path):
    configure(tmp_path, Vpc(aws("ec2")))
    file = write_project(tmp_path, ("instance_count: 1", "instance_count: 2"))

    result = invoke("doctor", "--deployment", file, "--json")

    assert 10 == result.exit_code
    assert {
        "not_deployed": "warn", "vpc_no_route_to_s3": "block",
        "vpc_group_closed_to_itself": "block", "vpc_no_internet": "info", "quota_unknown": "info",
    } == severities(result)  # fmt: skip


def test_a_vpc_in_order_leaves_a_note(invoke, aws, bootstrapped, tmp_path):
    vpc = Vpc(aws("ec2"))
    vpc.open_to_itself()
    vpc.add_s3_endpoint()
    configure(tmp_path, vpc)

    result = invoke("doctor", "--deployment", "--only", "vpc")

    assert 0 == result.exit_code, result.stdout
    assert "interface endpoint" in result.stdout
    assert "No blockers." in result.stdout


def test_what_is_deployed_is_examined_and_not_what_cdk_json_says_now(
    invoke, aws, bootstrapped, tmp_path, monkeypatch
):
    vpc = Vpc(aws("ec2"))
    configure(tmp_path, None)
    deploy(aws, vpc)

    result = invoke("doctor", "--deployment", "--json")

    assert 10 == result.exit_code, result.output
    assert {"vpc_not_deployed", "vpc_no_route_to_s3", "vpc_group_closed_to_itself",
            "vpc_no_internet"} == set(severities(result))  # fmt: skip


def deploy(aws: Any, vpc: Vpc) -> None:
    """A stack with the output and the function that the check reads, as botocore knows them."""

    class Stacks:
        meta = boto3.client("cloudformation", region_name=REGION).meta

        def describe_stacks(self, **request: str) -> Any:
            return cloudformation(outputs={"JobRoles": ROLES}).describe_stacks(**request)

    aws.replaced["cloudformation"] = Stacks()
    settings = {"vpc": {"subnet_ids": [vpc.subnet], "security_group_ids": [vpc.group]}}
    functions = boto3.client("lambda", region_name=REGION)
    stubber = Stubber(functions)
    stubber.add_response(
        "get_function_configuration",
        {"Environment": {"Variables": {"SETTINGS": json.dumps(settings)}}},
        {"FunctionName": "compilegate-prod-plan-trial"},
    )
    stubber.activate()
    aws.replaced["lambda"] = functions


def test_a_part_that_may_not_be_read_is_named_and_the_others_are_examined(invoke, aws, monkeypatch):
    def denied(*_: Any) -> int:
        error = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
        raise ClientError(error, "GetParameter")

    monkeypatch.setattr(deployment_check.reading, "bootstrap_version", denied)

    result = invoke("doctor", "--deployment", "--json")

    assert {"not_checked": "info", "not_deployed": "warn"} == severities(result)
    assert 11 == result.exit_code


ACCOUNT = "123456789012"
TRUST = {
    "Effect": "Allow",
    "Principal": {"Service": "sagemaker.amazonaws.com"},
    "Action": "sts:AssumeRole",
}
PROVIDED = {
    "job_roles": "provided",
    "job_role_arn": f"arn:aws:iam::{ACCOUNT}:role/ml/train-{{workload}}",
    "permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/Boundary",
    "tags": {"cost-centre": "1"},
}


def make_role(aws: Any, **tags: str) -> None:
    aws("iam").create_role(
        Path="/ml/", RoleName="train-bert-docs",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [TRUST]}),
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )  # fmt: skip


def test_roles_that_are_provided_and_what_they_are_made_under_must_be_there(invoke, aws, tmp_path):
    configure(tmp_path, None, **PROVIDED)
    file = write_project(tmp_path)
    ask = ("doctor", "--deployment", file, "--only", "roles", "--json")

    missing = {"role_missing": "block", "boundary_missing": "block"}
    assert missing == severities(invoke(*ask))

    policy = json.dumps({"Version": "2012-10-17", "Statement": [{**TRUST, "Resource": "*"}]})
    aws("iam").create_policy(PolicyName="Boundary", PolicyDocument=policy)
    make_role(aws)
    untagged = {"role_not_isolated": "warn", "role_without_tags": "warn"}
    assert untagged == severities(invoke(*ask))

    tags = {"cost-centre": "1", "compilegate-workload": "bert-docs"}
    aws("iam").tag_role(
        RoleName="train-bert-docs", Tags=[{"Key": key, "Value": tags[key]} for key in tags]
    )
    assert {} == severities(invoke(*ask))


def test_what_is_demanded_of_jobs_must_be_possible(invoke, aws, tmp_path):
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:sign-in"
    rules = {"network_isolation": True, "registry_credentials": function}
    configure(tmp_path, None, jobs=rules)
    file = write_project(tmp_path)
    ask = ("doctor", "--deployment", file, "--only", "jobs", "--json")

    assert {"registry_function_missing": "block"} == severities(invoke(*ask))
    (read_workload(Path(file)).source_dir / "requirements.txt").write_text("accelerate\n")
    assert {
        "registry_function_missing": "block", "isolated_installs": "block",
    } == severities(invoke(*ask))  # fmt: skip
    configure(tmp_path, None)
    assert {} == severities(invoke(*ask))


def test_a_bootstrap_of_another_qualifier_does_not_count(invoke, aws, bootstrapped, tmp_path):
    configure(tmp_path, None, bootstrap_qualifier="mine")
    ask = ("doctor", "--deployment", "--only", "bootstrap", "--json")

    assert {"bootstrap_missing": "block"} == severities(invoke(*ask))
    bootstrap(aws, "mine")
    assert {} == severities(invoke(*ask))


def test_a_bucket_that_exists_must_do_what_the_stacks_own_would(invoke, aws, tmp_path):
    configure(tmp_path, None, bucket_name="data-of-ours", existing_bucket=True)
    ask = ("doctor", "--deployment", "--only", "bucket", "--json")
    assert {"bucket_missing": "block"} == severities(invoke(*ask))

    s3 = aws("s3")
    s3.create_bucket(Bucket="data-of-ours")
    encrypt = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "1234"}
    s3.put_bucket_encryption(
        Bucket="data-of-ours",
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": encrypt}]
        },
    )
    assert {
        "bucket_not_versioned": "block", "bucket_other_key": "block",
        "bucket_without_expiry": "warn",
    } == severities(invoke(*ask))  # fmt: skip

    s3.put_bucket_versioning(Bucket="data-of-ours", VersioningConfiguration={"Status": "Enabled"})
    rules = [
        {"ID": name, "Status": "Enabled", "Filter": {"Prefix": name}, "Expiration": {"Days": 30}}
        for name in ("experiments/", "compile-cache/")
    ]
    s3.put_bucket_lifecycle_configuration(
        Bucket="data-of-ours", LifecycleConfiguration={"Rules": rules}
    )
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234"
    configure(tmp_path, None, bucket_name="data-of-ours", existing_bucket=True, customer_key=key)
    assert {} == severities(invoke(*ask))

    # The managed key of S3 is one that every role may use; these rules expire a part alone.
    encrypt["KMSMasterKeyID"] = f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/aws/s3"
    s3.put_bucket_encryption(
        Bucket="data-of-ours",
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": encrypt}]
        },
    )
    some = {"Tag": {"Key": "a", "Value": "b"}}
    rules = [{"ID": "x", "Status": "Enabled", "Filter": some, "Expiration": {"Days": 30}}]
    s3.put_bucket_lifecycle_configuration(
        Bucket="data-of-ours", LifecycleConfiguration={"Rules": rules}
    )
    assert {"bucket_without_expiry": "warn"} == severities(invoke(*ask))


def test_ids_of_another_account_and_a_subnet_that_is_full(aws):
    vpc = Vpc(aws("ec2"), cidr="10.0.0.0/28")
    setting = VpcSetting((vpc.subnet, "subnet-0123456789abcdef0"), ("sg-0123456789abcdef0",))

    network = read_network(vpc.ec2, setting)

    assert (("subnet-0123456789abcdef0",), ("sg-0123456789abcdef0",)) == (
        network.missing_subnets, network.missing_groups,
    )  # fmt: skip
    assert (vpc.id, 11) == (network.subnets[0].vpc_id, network.subnets[0].free_addresses)


def test_a_subnets_own_route_table_counts_before_the_vpcs_main_one(aws):
    vpc = Vpc(aws("ec2"))
    main = vpc.add_s3_endpoint()
    assert main == vpc.read().subnets[0].route_table_id
    own = vpc.ec2.create_route_table(VpcId=vpc.id)["RouteTable"]["RouteTableId"]
    vpc.ec2.associate_route_table(RouteTableId=own, SubnetId=vpc.subnet)
    gateway = vpc.ec2.create_nat_gateway(SubnetId=vpc.subnet)["NatGateway"]["NatGatewayId"]

    before = vpc.read().subnets[0]
    vpc.ec2.create_route(RouteTableId=own, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=gateway)
    after = vpc.read().subnets[0]

    assert (own, False) == (before.route_table_id, before.reaches_the_internet)
    assert after.reaches_the_internet


def test_endpoints_are_read_with_their_service_and_way(aws):
    vpc = Vpc(aws("ec2"))
    table = vpc.add_s3_endpoint()
    vpc.ec2.create_vpc_endpoint(
        VpcId=vpc.id, ServiceName=f"com.amazonaws.{REGION}.ecr.api", VpcEndpointType="Interface",
        SubnetIds=[vpc.subnet], PrivateDnsEnabled=True,
    )  # fmt: skip

    read = {one.service: one for one in vpc.read().endpoints}

    assert (True, (table,)) == (read["s3"].is_gateway, read["s3"].route_table_ids)
    assert (False, True) == (read["ecr.api"].is_gateway, read["ecr.api"].private_dns)


def test_a_vpc_without_names_or_with_dedicated_machines(aws):
    vpc = Vpc(aws("ec2"))
    vpc.ec2.modify_vpc_attribute(VpcId=vpc.id, EnableDnsSupport={"Value": False})

    assert not vpc.read().dns
    assert "default" == vpc.read().tenancy


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--deployment", "--sarif"], "--sarif"),
        (["--deployment", "--compiler", "all"], "--compiler"),
        (["--only", "vpc", "train.py"], "--only"),
        ([], "PATH"),
    ],
)
def test_an_option_of_the_other_examination_is_refused_rather_than_ignored(
    invoke, arguments, field
):
    result = invoke("doctor", *arguments)

    assert result.exit_code == 2
    assert f"Error: {field}: " in result.stderr


def test_a_stack_that_failed_is_named_as_such(invoke, aws, monkeypatch):
    def failed(client: Any, stage: str) -> Any:
        problem = "The stack x in y is not in use (ROLLBACK_COMPLETE)"
        raise NotDeployedError(problem, fix="read")

    monkeypatch.setattr(deployment_check, "stack_outputs", failed)

    (stack,) = json.loads(invoke("doctor", "--deployment", "--only", "stack", "--json").stdout)[
        "reasons"
    ]

    assert "The stack x in y is not in use (ROLLBACK_COMPLETE)" == stack["message"]
