"""What an organisation demands of a deployment, on the template."""

import json
from fnmatch import fnmatch

import pytest

from compilegate.domain.naming import job_role_arn
from compilegate_checkup.rules import GATEWAYS, INTERFACES, OF_ROLES
from tests.stacks.template import ACCOUNT, as_list, load
from tests.stacks.test_permissions import MACHINES, MAKERS

BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/Boundary"
VPC = {
    "subnet_ids": ["subnet-0123456789abcdef0"], "security_group_ids": ["sg-0123456789abcdef0"],
}  # fmt: skip
# The second replaces a tag of the stack's own: IAM refuses two keys that differ by case alone.
TAGS = {"cost-centre": "1", "Application": "risk"}
SIGNS_IN = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:registry"
PROVIDED = f"arn:aws:iam::{ACCOUNT}:role/ml/train-{{workload}}"
# What CloudFormation tags nowhere: a part of something else, or without tags of its own.
WITHOUT_TAGS = {
    "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::Permission", "AWS::Lambda::Version",
    "AWS::S3::BucketPolicy", "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy",
}  # fmt: skip


@pytest.fixture(scope="module")
def governed(synthesise):
    """The assembly of an organisation that demands everything, and makes no job's role itself."""
    return synthesise(
        permissions_boundary=BOUNDARY, role_prefix="ml-", role_path="/ml/",
        tags=TAGS, bootstrap_qualifier="mine", functions_vpc=VPC,
        jobs={"registry_credentials": SIGNS_IN},
    )  # fmt: skip


@pytest.fixture(scope="module")
def demanded(governed):
    return load(governed)


@pytest.fixture(scope="module")
def manifest(governed):
    return json.loads((governed / "manifest.json").read_text())["artifacts"]["Compilegate"]


@pytest.fixture(scope="module")
def provided(synthesise):
    return load(synthesise(job_roles="provided", job_role_arn=PROVIDED))


def test_every_role_has_the_boundary_the_prefix_and_the_path(demanded):
    roles = demanded.properties("AWS::IAM::Role")
    for role in roles:
        assert (BOUNDARY, "/ml/") == (role["PermissionsBoundary"], role["Path"])
        assert role["RoleName"].startswith("ml-")
        assert len(role["RoleName"]) <= 64
    assert len(roles) == len({role["RoleName"] for role in roles})


def test_functions_make_roles_of_that_name_under_that_boundary_and_change_no_other(demanded):
    roles = f"arn:aws:iam::{ACCOUNT}:role/ml/ml-prod-us-east-1-*"
    own = [role["RoleName"] for role in demanded.properties("AWS::IAM::Role")]

    assert {name: [roles] for name in MAKERS} == demanded.allowed("iam:CreateRole")
    for owner in MAKERS:
        conditions = {
            action: statement["Condition"]
            for statement in demanded.statements(owner)
            for action in as_list(statement["Action"])
            if action.startswith("iam:") and "Condition" in statement
        }
        bounded = {"iam:PermissionsBoundary": BOUNDARY}
        assert bounded == conditions["iam:CreateRole"]["StringEquals"]
        assert bounded == conditions["iam:AttachRolePolicy"]["StringEquals"]
        assert "cost-centre" in str(conditions["iam:TagRole"])
    assert [] == [name for name in own if fnmatch(f"arn:aws:iam::{ACCOUNT}:role/ml/{name}", roles)]


def test_every_resource_and_the_stack_itself_have_the_tags(demanded, manifest):
    tag = {"Key": "cost-centre", "Value": "1"}
    untagged = {
        one["Type"]
        for one in demanded.resources.values()
        if tag not in (tags := one["Properties"].get("Tags", []))
        and "1" != (tags.get("cost-centre") if isinstance(tags, dict) else None)
    }

    assert WITHOUT_TAGS == untagged
    assert TAGS == manifest["properties"]["tags"]
    for role in demanded.properties("AWS::IAM::Role"):
        keys = [one["Key"].lower() for one in role["Tags"]]
        assert len(keys) == len(set(keys))


def test_every_function_is_in_the_network_and_may_make_its_interfaces(demanded):
    network = {"SubnetIds": VPC["subnet_ids"], "SecurityGroupIds": VPC["security_group_ids"]}
    functions = demanded.properties("AWS::Lambda::Function")

    assert [network] * len(functions) == [item["VpcConfig"] for item in functions]
    makers = set(demanded.allowed("ec2:CreateNetworkInterface"))
    assert {item["Handler"].rpartition(".")[2] for item in functions} == makers


def test_the_checkup_knows_every_service_that_functions_call(template):
    """What Lambda does for them, and what S3 and DynamoDB do, needs no way of their own."""
    by_lambda, by_storage, without_quotas = {"logs", "sqs", "xray"}, {"kms"}, {"servicequotas"}
    called = {
        action.partition(":")[0]
        for item in template.properties("AWS::Lambda::Function")
        for action in template.actions(item["Handler"].rpartition(".")[2])
    }

    known = {name.partition(".")[0] for name in (*GATEWAYS, *INTERFACES, OF_ROLES)}
    assert called == known | by_lambda | by_storage | without_quotas


def test_jobs_may_call_the_function_that_signs_in_to_their_registry(demanded):
    """As the job's role: SageMaker calls it for the job."""
    (policy,) = demanded.properties("AWS::IAM::ManagedPolicy")

    calls = {"Action": "lambda:InvokeFunction", "Effect": "Allow", "Resource": SIGNS_IN}
    assert calls in policy["PolicyDocument"]["Statement"]


def test_with_provided_roles_nothing_of_iam_is_called_at_run_time(provided):
    actions = {
        action
        for owner in provided.owners()
        for action in provided.actions(owner)
        if action.startswith("iam:")
    }

    assert {"iam:PassRole"} == actions
    roles = job_role_arn(PROVIDED, "*")
    assert {name: [roles] for name in MACHINES} == provided.allowed("iam:PassRole")
    for function in provided.properties("AWS::Lambda::Function"):
        variables = function["Environment"]["Variables"]
        assert PROVIDED == variables["JOB_ROLES"]
        assert "JOB_POLICY_ARN" not in variables
    assert PROVIDED == provided.document["Outputs"]["JobRoles"]["Value"]
