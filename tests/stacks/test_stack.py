"""The stack as a whole: a pure function of the repository, the same on every stage."""

import json
import os
import re
import subprocess
import sys

import pytest

import app
from compilegate.domain import naming
from compilegate.domain.metrics import FLAG_PROBLEMS, NAMESPACE, STAGE
from tests.stacks.conftest import VPC
from tests.stacks.template import TEMPLATE


def files(assembly):
    return {
        path.relative_to(assembly).as_posix(): path.read_bytes()
        for path in assembly.rglob("*")
        if path.is_file() and path.name not in ("tree.json", "manifest.json")
    }


def test_the_same_repository_gives_the_same_assembly_whatever_the_clock_says(
    assembly, synthesise, monkeypatch
):
    source = app.REPOSITORY / "lambdas" / "handlers.py"
    before = source.stat()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    os.utime(source, (1_000_000_000, 1_000_000_000))
    try:
        again = synthesise()
    finally:
        os.utime(source, (before.st_atime, before.st_mtime))

    assert files(assembly) == files(again)


def test_the_local_stage_differs_in_its_name_only(assembly, synthesise):
    shipped = (assembly / TEMPLATE).read_text()
    local = (synthesise(stage="local") / TEMPLATE).read_text()

    def neutral(text, stage):
        # A version's logical id is made of what the version holds, the stage among it.
        return re.sub(r"CurrentVersion\w+", "VERSION", re.sub(rf"\b{stage}\b", "STAGE", text))

    assert neutral(shipped, "prod") == neutral(local, "local")


def test_synthesis_asks_for_no_account(assembly, template):
    manifest = json.loads((assembly / "manifest.json").read_text())
    environment = manifest["artifacts"]["Compilegate"]["environment"]

    assert "aws://unknown-account/us-east-1" == environment
    assert "missing" not in manifest


def test_deployment_builds_no_docker_image(assembly):
    assets = json.loads((assembly / "Compilegate.assets.json").read_text())

    assert {} == assets["dockerImages"]


def test_the_outputs_are_those_that_commands_read(template):
    expected = [
        "DataBucket", "DeadLetterQueue", "DecisionTopic", "EvaluateStateMachine",
        "LedgerTable", "ScheduleGroup", "SchedulerRole", "Stage", "TrainStateMachine",
        "TrainingRole",
    ]  # fmt: skip
    assert expected == sorted(template.document["Outputs"])


def test_everything_that_can_carry_a_tag_says_whose_it_is(template):
    for kind in (
        "AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::SNS::Topic",
        "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::StepFunctions::StateMachine",
        "AWS::Logs::LogGroup",
    ):  # fmt: skip
        for key, resource in template.of_type(kind).items():
            tags = {tag["Key"]: tag["Value"] for tag in resource["Properties"]["Tags"]}
            assert "compilegate" == tags["application"], key
            assert "prod" == tags["compilegate:deployment"], key


def test_a_vpc_reaches_the_functions_and_the_training_role(changed):
    _, function = changed.function("plan_trial")
    settings = json.loads(function["Properties"]["Environment"]["Variables"]["SETTINGS"])
    assert VPC == settings["vpc"]
    assert "training" in changed.allowed("ec2:CreateNetworkInterface")


def test_without_a_vpc_training_has_no_network_permissions(template):
    assert {} == template.allowed("ec2:CreateNetworkInterface")


def test_the_topic_is_encrypted_and_refuses_plain_text(template):
    assert "KmsMasterKeyId" in template.one("AWS::SNS::Topic")["Properties"]
    policy = template.one("AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    denied = [statement for statement in policy if statement["Effect"] == "Deny"]
    assert {"Bool": {"aws:SecureTransport": "false"}} in [item["Condition"] for item in denied]


def test_alarms_may_publish_to_the_topic(template):
    policy = template.one("AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    allowed = [statement for statement in policy if statement["Effect"] == "Allow"]

    assert [{"Service": "cloudwatch.amazonaws.com"}] == [item["Principal"] for item in allowed]


def test_every_bad_ending_and_every_function_error_raises_an_alarm(template):
    topic = template.one("AWS::SNS::TopicPolicy")["Properties"]["Topics"][0]
    alarms = [item["Properties"] for item in template.of_type("AWS::CloudWatch::Alarm").values()]
    watched = [
        (alarm["MetricName"], *[str(dim["Value"]) for dim in alarm["Dimensions"]])
        for alarm in alarms
    ]

    endings = {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}
    machines = template.of_type("AWS::StepFunctions::StateMachine")
    expected = {(ending, str({"Ref": machine})) for ending in endings for machine in machines}
    assert expected == {found for found in watched if found[0] in endings}
    functions = template.of_type("AWS::Lambda::Function")
    assert {str({"Ref": key}) for key in functions} == {
        name for metric, name in watched if metric == "Errors"
    }
    for alarm in alarms:
        assert [topic] == alarm["AlarmActions"]
        assert "notBreaching" == alarm["TreatMissingData"]


def test_a_flag_that_production_could_not_follow_raises_an_alarm(template):
    """By the names under which the functions count it."""
    alarms = [item["Properties"] for item in template.of_type("AWS::CloudWatch::Alarm").values()]
    (alarm,) = [alarm for alarm in alarms if alarm["MetricName"] == FLAG_PROBLEMS]

    assert (NAMESPACE, [{"Name": STAGE, "Value": "prod"}], "Sum", 1) == (
        alarm["Namespace"], alarm["Dimensions"], alarm["Statistic"], alarm["Threshold"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "function"), [("evaluate", "abort_trial"), ("train", "record_run")]
)
def test_an_execution_that_ends_badly_is_cleaned_up_by_event(template, machine, function):
    key, _ = template.machines()[machine]
    (rule,) = [rule for rule in rules(template) if {"Ref": key} in leaves(rule["EventPattern"])]
    target, _ = template.function(function)

    assert {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {
            "stateMachineArn": [{"Ref": key}],
            "status": ["FAILED", "TIMED_OUT", "ABORTED"],
        },
    } == rule["EventPattern"]
    arn = {"Ref": template.live(target)}
    assert [arn] == [target["Arn"] for target in rule["Targets"]]
    (permission,) = [
        item["Properties"]
        for item in template.of_type("AWS::Lambda::Permission").values()
        if item["Properties"]["FunctionName"] == arn
    ]
    assert "events.amazonaws.com" == permission["Principal"]
    assert "SourceArn" in permission


def test_a_teams_job_that_has_ended_is_recorded_by_event(template):
    (rule,) = [r for r in rules(template) if ["aws.sagemaker"] == r["EventPattern"]["source"]]
    train, _ = template.machines()["train"]

    assert {
        "TrainingJobStatus": ["Completed", "Failed", "Stopped"],
        "Tags": {
            naming.TAG_STAGE: [naming.TEAM_STAGE],
            naming.TAG_WORKLOAD: [{"exists": True}],
        },
    } == rule["EventPattern"]["detail"]
    assert [{"Ref": train}] == [target["Arn"] for target in rule["Targets"]]


def rules(template):
    """Those that wait for an event; one is a schedule (test_weekly_digest.py)."""
    found = [item["Properties"] for item in template.of_type("AWS::Events::Rule").values()]
    return [rule for rule in found if "EventPattern" in rule]


def leaves(pattern):
    """What a pattern's lists hold."""
    if isinstance(pattern, list):
        return pattern
    return [leaf for value in pattern.values() for leaf in leaves(value)]


@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_a_machine_logs_everything_and_is_traced(template, name):
    machine = template.machines()[name][1]["Properties"]

    logging = machine["LoggingConfiguration"]
    assert "ALL" == logging["Level"]
    assert logging["IncludeExecutionData"] is True
    assert {"Enabled": True} == machine["TracingConfiguration"]
    (destination,) = logging["Destinations"]
    group = destination["CloudWatchLogsLogGroup"]["LogGroupArn"]["Fn::GetAtt"][0]
    assert 90 == template.of_type("AWS::Logs::LogGroup")[group]["Properties"]["RetentionInDays"]


@pytest.mark.slow
def test_the_script_writes_what_the_function_does(assembly, tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CDK_")}
    subprocess.run(
        [sys.executable, "app.py"],
        cwd=app.REPOSITORY,
        env={**environment, "CDK_OUTDIR": str(tmp_path), "PATH": "/nonexistent"},
        check=True,
    )

    assert files(assembly) == files(tmp_path)
