"""With ``enforce_iam`` a missing grant fails here as it would on AWS."""

import hashlib
import json

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests.conftest import FAST, make_places
from distributions.localcloud.tests.helpers import Machines, Trainer, function_bundle
from distributions.localcloud.tests.test_state_machine_training import machine, train_state

pytestmark = pytest.mark.e2e

READ_PARAMETER = (
    "import boto3\ndef handler(event, context):\n"
    "    return boto3.client('ssm').get_parameter(Name='/p')['Parameter']['Value']\n"
)
STORAGE = {"Action": ["s3:GetObject", "s3:PutObject", "s3:ListBucket"], "Resource": "*"}
LOGS = {"Action": ["logs:*"], "Resource": "*"}


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    with LocalCloud(places=make_places(tmp_path_factory.mktemp("strict"))) as cloud:
        cloud.start(attached=True, enforce_iam=True, extra_arguments=FAST)
        cloud.client("ssm").put_parameter(Name="/p", Value="granted", Type="String")
        yield cloud


@pytest.fixture(scope="module")
def role(strict):
    """Makes a role that may do what the statements allow."""
    iam = strict.client("iam")

    def make(name, service, *statements):
        trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        arn = iam.create_role(
            RoleName=name,
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        )["Role"]["Arn"]
        if statements:
            allowed = [{"Effect": "Allow", **statement} for statement in statements]
            document = json.dumps({"Version": "2012-10-17", "Statement": allowed})
            iam.put_role_policy(RoleName=name, PolicyName="grants", PolicyDocument=document)
        return arn

    return make


def call(strict, name, role_arn):
    strict.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.12",
        Handler="index.handler",
        Role=role_arn,
        Code={"ZipFile": function_bundle(READ_PARAMETER)},
    )
    answer = strict.client("lambda").invoke(FunctionName=name)
    return json.loads(answer["Payload"].read())


def test_function_may_do_what_its_role_allows_and_nothing_else(strict, role):
    allowed = {"Action": "ssm:GetParameter", "Resource": "arn:aws:ssm:*:*:parameter/p"}
    elsewhere = {"Action": "ssm:GetParameter", "Resource": "arn:aws:ssm:*:*:parameter/other"}
    with_grant = call(strict, "with", role("with", "lambda.amazonaws.com", allowed))
    without = call(strict, "without", role("without", "lambda.amazonaws.com", elsewhere))

    assert with_grant == "granted"
    assert "AccessDeniedException" in without["errorMessage"]
    assert "ssm:GetParameter" in without["errorMessage"]


def test_each_read_of_an_account_needs_its_own_grant(strict):
    trust = {
        "Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
    }  # fmt: skip
    search = {"Effect": "Allow", "Action": "sagemaker:Search", "Resource": "*"}
    trusted, granted = (
        json.dumps({"Version": "2012-10-17", "Statement": [one]}) for one in (trust, search)
    )
    iam = strict.client("iam")
    reader = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=trusted)["Role"]["Arn"]
    iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=granted)
    keys = strict.client("sts").assume_role(RoleArn=reader, RoleSessionName="reader")["Credentials"]
    session = boto3.Session(
        keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], "us-east-1"
    )
    endpoint = strict.running_state().endpoint
    day = {"TimePeriod": {"Start": "2026-03-01", "End": "2026-03-02"}, "Granularity": "DAILY"}

    assert session.client("sagemaker", endpoint_url=endpoint).search(Resource="TrainingJob")
    with pytest.raises(ClientError, match="AccessDenied"):
        session.client("ce", endpoint_url=endpoint).get_cost_and_usage(
            **day, Metrics=["UsageQuantity"]
        )


def test_credentials_of_a_function_do_not_follow_from_its_name(strict, role):
    """Names of functions and roles stand in the template, which everybody has."""
    arn = role("named", "lambda.amazonaws.com")
    source = "import os\ndef handler(event, context):\n    return dict(os.environ)\n"
    function = strict.client("lambda").create_function(
        FunctionName="named", Runtime="python3.12", Handler="index.handler", Role=arn,
        Code={"ZipFile": function_bundle(source)},
    )["FunctionArn"]  # fmt: skip
    answer = strict.client("lambda").invoke(FunctionName="named")
    environment = json.loads(answer["Payload"].read())
    public = hashlib.sha256(f"{function}:{arn}".encode()).hexdigest()

    assert (
        hashlib.sha256(f"secret:{public}".encode()).hexdigest()
        != environment["AWS_SECRET_ACCESS_KEY"]
    )
    assert strict.running_state().secret != environment["AWS_SECRET_ACCESS_KEY"]


def test_training_job_may_do_only_what_its_role_allows(strict, role):
    trainer = Trainer(strict.client)
    script = "import boto3\nprint(boto3.client('sts').get_caller_identity()['Arn'])\n"
    good = trainer.run(script, RoleArn=role("train", "sagemaker.amazonaws.com", STORAGE, LOGS))
    bad = trainer.run("", RoleArn=role("train-bare", "sagemaker.amazonaws.com", LOGS))

    assert good["TrainingJobStatus"] == "Completed"
    assert "assumed-role/train/" in trainer.log_lines(good["TrainingJobName"])[0]
    assert bad["TrainingJobStatus"] == "Failed"
    assert bad["FailureReason"].startswith("AlgorithmError: Framework Error:")


def test_state_machine_may_create_only_the_jobs_its_role_allows(strict, role):
    machines = Machines(strict.client)
    trainer = Trainer(strict.client)
    training = role("train-sync", "sagemaker.amazonaws.com", STORAGE, LOGS)
    jobs = {
        "Action": [
            "sagemaker:AddTags",
            *(f"sagemaker:{verb}TrainingJob" for verb in ("Create", "Describe", "Stop")),
        ],
        "Resource": "arn:aws:sagemaker:*:*:training-job/allowed-*",
    }
    passing = {
        "Action": "iam:PassRole",
        "Resource": training,
        "Condition": {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
    }
    machines.role = role("machine", "states.amazonaws.com", jobs, passing)
    definition = machine(Train=train_state())
    good = machines.run(definition, trainer.request("", name="allowed-1", RoleArn=training))
    bad = machines.run(definition, trainer.request("", name="other-1", RoleArn=training))

    assert good["status"] == "SUCCEEDED", good
    assert bad["status"] == "FAILED"
    assert "not authorized to perform: sagemaker:CreateTrainingJob" in bad["cause"]


@pytest.mark.parametrize("missing", ["iam:PassRole", "sagemaker:AddTags"])
def test_grants_that_creating_a_job_needs_besides_are_checked(strict, role, missing):
    machines, trainer = Machines(strict.client), Trainer(strict.client)
    suffix = missing.partition(":")[2]
    training = role(f"train-{suffix}", "sagemaker.amazonaws.com", STORAGE, LOGS)
    needed = {"sagemaker:CreateTrainingJob", "sagemaker:AddTags", "iam:PassRole"} - {missing}
    grant = {"Action": sorted(needed), "Resource": "*"}
    machines.role = role(f"machine-{suffix}", "states.amazonaws.com", grant)
    result = machines.run(machine(Train=train_state()), trainer.request("", RoleArn=training))

    assert result["status"] == "FAILED"
    assert f"not authorized to perform: {missing}" in result["cause"]
