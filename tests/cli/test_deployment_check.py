"""``doctor --deployment`` against moto's account: real calls, a VPC as people build it."""

import json
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from compilegate.adapters.workload_files import read_workload
from compilegate_checkup import account as deployment_check
from compilegate_checkup.reading import BOOTSTRAP_PARAMETER, DEFAULT_QUALIFIER, read_network
from compilegate_checkup.rules import VpcSetting
from tests.cli.project import write_project
from tests.cli.test_connect import cloudformation
from tests.fakes import ROLES

REGION = "us-east-1"


@pytest.fixture
def aws(monkeypatch, providers):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    replaced = {}

    def client(service, region=REGION):
        if service == "cloudformation" and service not in replaced:
            return cloudformation(outputs=None)
        return replaced.get(service) or boto3.client(service, region_name=region)

    client.replaced = replaced
    monkeypatch.setattr(providers, "client", client, raising=False)
    with mock_aws():
        yield client


@pytest.fixture
def bootstrapped(aws):
    bootstrap(aws, DEFAULT_QUALIFIER)


def bootstrap(aws, qualifier):
    name = BOOTSTRAP_PARAMETER.format(qualifier=qualifier)
    aws("ssm").put_parameter(Name=name, Value="30", Type="String")


class Vpc:
    """A private subnet and a security group, as EC2 makes them."""

    def __init__(self, ec2, cidr="10.0.0.0/24", **more):
        self.ec2 = ec2
        self.id = ec2.create_vpc(CidrBlock="10.0.0.0/16", **more)["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=self.id, CidrBlock=cidr)["Subnet"]["SubnetId"]
        self.group = ec2.create_security_group(
            VpcId=self.id, GroupName="jobs", Description="training jobs"
        )["GroupId"]

    @property
    def setting(self):
        return VpcSetting((self.subnet,), (self.group,))

    def open_to_itself(self):
        pair = {"UserIdGroupPairs": [{"GroupId": self.group}], "IpProtocol": "-1"}
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=[pair])

    def add_s3_endpoint(self):
        (table,) = self.ec2.describe_route_tables(
            Filters=[{"Name": "vpc-id", "Values": [self.id]}]
        )["RouteTables"]
        self.ec2.create_vpc_endpoint(
            VpcId=self.id, ServiceName=f"com.amazonaws.{REGION}.s3", VpcEndpointType="Gateway",
            RouteTableIds=[table["RouteTableId"]],
        )  # fmt: skip
        return str(table["RouteTableId"])

    def read(self):
        return read_network(self.ec2, self.setting)


def configure(folder, vpc, **more):
    setting = vpc and {"subnet_ids": [vpc.subnet], "security_group_ids": [vpc.group]}
    context = {"stage": "prod", "region": REGION, "vpc": setting, **more}
    (folder / "cdk.json").write_text(json.dumps({"context": context}))


@pytest.fixture
def found(invoke):
    """Codes and severities of what an examination of one part finds."""

    def call(part, *files):
        return severities(invoke("doctor", "--deployment", *files, "--only", part, "--json"))

    return call


def severities(result):
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


def test_what_is_deployed_is_examined_and_not_cdk_json(found, aws, tmp_path):
    vpc = Vpc(aws("ec2"))
    configure(tmp_path, None)
    settings = {"vpc": {"subnet_ids": [vpc.subnet], "security_group_ids": [vpc.group]}}
    answer = {"Environment": {"Variables": {"SETTINGS": json.dumps(settings)}}}
    asked = {"FunctionName": "compilegate-prod-plan-trial"}
    functions = boto3.client("lambda", region_name=REGION)
    with Stubber(functions) as stubber:
        stubber.add_response("get_function_configuration", answer, asked)
        aws.replaced |= {"cloudformation": cloudformation(outputs={"JobRoles": ROLES})}
        aws.replaced |= {"lambda": functions}

        assert "vpc_not_deployed" in found("vpc")


def test_a_part_that_may_not_be_read_is_named_and_the_others_are_examined(invoke, aws, monkeypatch):
    def denied(*_):
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


def test_roles_that_are_provided_and_what_they_are_made_under_must_be_there(found, aws, tmp_path):
    configure(tmp_path, None, **PROVIDED)
    file = write_project(tmp_path)
    assert {"role_missing": "block", "boundary_missing": "block"} == found("roles", file)

    policy = json.dumps({"Version": "2012-10-17", "Statement": [{**TRUST, "Resource": "*"}]})
    aws("iam").create_policy(PolicyName="Boundary", PolicyDocument=policy)
    trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    aws("iam").create_role(
        Path="/ml/", RoleName="train-bert-docs", AssumeRolePolicyDocument=trust
    )  # fmt: skip
    assert {"role_not_isolated": "warn", "role_without_tags": "warn"} == found("roles", file)

    tags = {"cost-centre": "1", "compilegate-workload": "bert-docs"}
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    aws("iam").tag_role(RoleName="train-bert-docs", Tags=pairs)
    assert {} == found("roles", file)


def test_what_is_demanded_of_jobs_must_be_possible(found, aws, tmp_path):
    function = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:sign-in"
    configure(
        tmp_path, None, jobs={"network_isolation": True, "registry_credentials": function}
    )  # fmt: skip
    file = write_project(tmp_path)
    missing = {"registry_function_missing": "block"}

    assert missing == found("jobs", file)
    (read_workload(Path(file)).source_dir / "requirements.txt").write_text("accelerate\n")
    assert {**missing, "isolated_installs": "block"} == found("jobs", file)
    configure(tmp_path, None)
    assert {} == found("jobs", file)


def encrypt(s3, key):
    by = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": by}]}
    s3.put_bucket_encryption(Bucket="ours", ServerSideEncryptionConfiguration=rules)


def expire(s3, *filters):
    rules = [
        {"ID": str(number), "Status": "Enabled", "Filter": one, "Expiration": {"Days": 30}}
        for number, one in enumerate(filters)
    ]
    s3.put_bucket_lifecycle_configuration(Bucket="ours", LifecycleConfiguration={"Rules": rules})


def test_a_bucket_that_exists_must_do_what_the_stacks_own_would(found, aws, tmp_path):
    configure(tmp_path, None, bucket_name="ours", existing_bucket=True)
    assert {"bucket_missing": "block"} == found("bucket")

    s3 = aws("s3")
    s3.create_bucket(Bucket="ours")
    encrypt(s3, "1234")
    assert {
        "bucket_not_versioned": "block", "bucket_other_key": "block",
        "bucket_without_expiry": "warn",
    } == found("bucket")  # fmt: skip

    s3.put_bucket_versioning(Bucket="ours", VersioningConfiguration={"Status": "Enabled"})
    expire(s3, {"Prefix": "experiments/"}, {"Prefix": "compile-cache/"})
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234"
    configure(tmp_path, None, bucket_name="ours", existing_bucket=True, customer_key=key)
    assert {} == found("bucket")

    # The managed key of S3 is one that every role may use; these rules expire a part alone.
    encrypt(s3, f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/aws/s3")
    expire(s3, {"Tag": {"Key": "a", "Value": "b"}})
    assert {"bucket_without_expiry": "warn"} == found("bucket")


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


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--deployment", "--sarif"], "--sarif"),
        (["--deployment", "--compiler", "all"], "--compiler"),
        (["--only", "vpc", "train.py"], "--only"),
        ([], "PATH"),
    ],
)
def test_an_option_of_the_other_examination_is_refused(invoke, arguments, field):
    result = invoke("doctor", *arguments)

    assert result.exit_code == 2
    assert f"Error: {field}: " in result.stderr
