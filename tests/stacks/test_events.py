"""What starts by itself, what is alarmed, and where undelivered events go."""

import json
import re
from pathlib import Path

import pytest

from compilegate.domain import naming
from compilegate.domain.arithmetic import FLAG_PROBLEMS, NAMESPACE, ROWS_REPAIRED, STAGE
from compilegate.domain.naming import LIVE
from tests.stacks.template import refusals

# Called by EventBridge, which does not wait for an answer.
ASYNCHRONOUS = {"abort_trial", "record_run", "sweep", "weekly_digest"}
PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()


def rule_of(template, target):
    """The properties of the rule that has ``target``."""
    (rule,) = rules_of(template, target)
    return rule


def rules_of(template, target):
    """The properties of those that have it, by the clock before by events."""
    rules = [
        rule
        for rule in template.properties("AWS::Events::Rule")
        if target in [item["Arn"] for item in rule["Targets"]]
    ]
    return sorted(rules, key=lambda rule: "EventPattern" in rule)


def alias_of(template, step):
    return f"<{template.live(template.function(step)[0])}>"


def queue_of(template):
    (key,) = template.of_type("AWS::SQS::Queue")
    return f"<{key}.Arn>"


@pytest.mark.parametrize(
    ("machine", "step"), [("evaluate", "abort_trial"), ("train", "record_run")]
)
def test_an_execution_that_ends_badly_is_cleaned_up_by_event(template, machine, step):
    rule = rule_of(template, alias_of(template, step))

    assert {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {
            "stateMachineArn": [f"<{template.machines()[machine][0]}>"],
            "status": ["FAILED", "TIMED_OUT", "ABORTED"],
        },
    } == rule["EventPattern"]


def test_a_teams_job_that_has_ended_is_recorded_by_event(template):
    rule = rule_of(template, f"<{template.machines()['train'][0]}>")

    assert ["aws.sagemaker"] == rule["EventPattern"]["source"]
    assert {
        "TrainingJobStatus": ["Completed", "Failed", "Stopped"],
        "$or": [
            {
                "Tags": {
                    naming.TAG_STAGE: [naming.TEAM_STAGE],
                    naming.TAG_WORKLOAD: [{"exists": True}],
                }
            },
            {"Tags": {"Key": [naming.TAG_STAGE], "Value": [naming.TEAM_STAGE]}},
        ],
    } == rule["EventPattern"]["detail"]


@pytest.mark.parametrize(
    ("step", "schedule"),
    [("weekly_digest", "cron(0 7 ? * MON *)"), ("sweep", "cron(30 5 * * ? *)")],
)
def test_a_rule_starts_it_by_schedule_and_never_twice(template, step, schedule):
    key, _ = template.function(step)
    rule, *_ = rules_of(template, alias_of(template, step))

    assert schedule == rule["ScheduleExpression"]
    assert 0 == rule["Targets"][0]["RetryPolicy"]["MaximumRetryAttempts"]
    (asynchronous,) = [
        item
        for item in template.properties("AWS::Lambda::EventInvokeConfig")
        if f"<{key}>" == item["FunctionName"]
    ]
    assert 0 == asynchronous["MaximumRetryAttempts"]


def test_the_sweep_also_starts_once_after_a_deployment_of_this_stack(template):
    _, rule = rules_of(template, alias_of(template, "sweep"))

    assert ["aws.cloudformation"] == rule["EventPattern"]["source"]
    assert {
        "stack-id": ["<AWS::StackId>"],
        "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE"]},
    } == rule["EventPattern"]["detail"]
    assert 0 == rule["Targets"][0]["RetryPolicy"]["MaximumRetryAttempts"]


def test_the_ledgers_stream_calls_the_projection_and_gives_nothing_up_within_a_day(template):
    (mapping,) = template.properties("AWS::Lambda::EventSourceMapping")
    (table,) = template.of_type("AWS::DynamoDB::Table")

    patterns = [json.loads(one["Pattern"]) for one in mapping["FilterCriteria"]["Filters"]]
    assert ["workload#", "lock#"] == [
        prefix["prefix"] for one in patterns for prefix in one["dynamodb"]["Keys"]["pk"]["S"]
    ]
    assert alias_of(template, "project") in mapping["FunctionName"]
    assert mapping["FunctionName"].endswith(f":{LIVE}")
    assert (f"<{table}.StreamArn>", "TRIM_HORIZON") == (
        mapping["EventSourceArn"], mapping["StartingPosition"],
    )  # fmt: skip
    # Without an end to the attempts but the stream's own; a part of a batch fails by itself.
    assert (None, 24 * 3600, True, ["ReportBatchItemFailures"]) == (
        mapping.get("MaximumRetryAttempts"), mapping["MaximumRecordAgeInSeconds"],
        mapping["BisectBatchOnFunctionError"], mapping["FunctionResponseTypes"],
    )  # fmt: skip
    assert {"OnFailure": {"Destination": queue_of(template)}} == mapping["DestinationConfig"]
    stream = template.properties("AWS::DynamoDB::Table")[0]["StreamSpecification"]
    assert {"StreamViewType": "KEYS_ONLY"} == stream


def test_events_call_the_newest_version_by_its_alias_and_only_as_permitted(template):
    aliases = template.of_type("AWS::Lambda::Alias")
    rules = template.properties("AWS::Events::Rule")
    called = {target["Arn"] for rule in rules for target in rule["Targets"]}
    permissions = template.properties("AWS::Lambda::Permission")

    assert {f"<{template.machines()['train'][0]}>"} == called - {f"<{key}>" for key in aliases}
    permitted = {item["FunctionName"] for item in permissions}
    assert called & {f"<{key}>" for key in aliases} == permitted
    assert all("SourceArn" in item for item in permissions)
    assert {LIVE} == {item["Properties"]["Name"] for item in aliases.values()}


def test_every_event_target_and_every_asynchronous_function_has_the_queue(template):
    queue = queue_of(template)
    for rule in template.properties("AWS::Events::Rule"):
        for target in rule["Targets"]:
            assert {"Arn": queue} == target["DeadLetterConfig"]

    names = {f"<{template.function(name)[0]}>": name for name in ASYNCHRONOUS}
    configs = template.properties("AWS::Lambda::EventInvokeConfig")
    assert ASYNCHRONOUS == {names[config["FunctionName"]] for config in configs}
    for config in configs:
        assert {"OnFailure": {"Destination": queue}} == config["DestinationConfig"]
    owners = {*ASYNCHRONOUS, "project"}
    assert {name: [queue] for name in owners} == template.allowed("sqs:SendMessage")


def test_rules_alone_write_to_the_encrypted_queue_beside_those_functions(template):
    (policy,) = template.properties("AWS::SQS::QueuePolicy")
    statements = policy["PolicyDocument"]["Statement"]
    allowed = [one for one in statements if one["Effect"] == "Allow"]

    assert {"events.amazonaws.com"} == {one["Principal"]["Service"] for one in allowed}
    assert {f"<{rule}.Arn>" for rule in template.of_type("AWS::Events::Rule")} == {
        one["Condition"]["ArnEquals"]["aws:SourceArn"] for one in allowed
    }
    assert [{"Bool": {"aws:SecureTransport": "false"}}] == refusals(policy)
    (queue,) = template.properties("AWS::SQS::Queue")
    assert (True, 14 * 24 * 3600) == (
        queue["SqsManagedSseEnabled"], queue["MessageRetentionPeriod"],
    )  # fmt: skip


def watched(template):
    """(metric, what it is about) of every alarm."""
    return {
        (alarm["MetricName"], dimension["Value"])
        for alarm in template.properties("AWS::CloudWatch::Alarm")
        for dimension in alarm["Dimensions"]
    }


def test_every_failure_has_an_alarm_that_publishes_to_the_topic(template):
    endings = ("ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted")
    machines = template.of_type("AWS::StepFunctions::StateMachine")
    (queue,) = template.of_type("AWS::SQS::Queue")
    (topic,) = template.of_type("AWS::SNS::Topic")

    assert {
        *((ending, f"<{machine}>") for ending in endings for machine in machines),
        *(("Errors", f"<{function}>") for function in template.of_type("AWS::Lambda::Function")),
        ("ApproximateNumberOfMessagesVisible", f"<{queue}.QueueName>"),
        ("InvocationDroppedCount", "compilegate-prod"),
        (FLAG_PROBLEMS, "prod"),
        (ROWS_REPAIRED, "prod"),
    } == watched(template)
    for alarm in template.properties("AWS::CloudWatch::Alarm"):
        assert ([f"<{topic}>"], 1) == (alarm["AlarmActions"], alarm["Threshold"])
        assert "notBreaching" == alarm["TreatMissingData"]
        if alarm["MetricName"] in (FLAG_PROBLEMS, ROWS_REPAIRED):  # which functions count
            assert (NAMESPACE, [{"Name": STAGE, "Value": "prod"}], "Sum") == (
                alarm["Namespace"], alarm["Dimensions"], alarm["Statistic"],
            )  # fmt: skip


def alarms(template):
    """What the alarms are called in the app."""
    return {
        resource["Metadata"]["aws:cdk:path"].split("/")[-2]
        for resource in template.of_type("AWS::CloudWatch::Alarm").values()
    }


def test_the_operating_page_has_a_row_for_every_alarm_that_says_what_it_means(template, changed):
    section = re.search(r"^## Alarms$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for line in section[1].splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]

    assert sorted(alarms(template) | alarms(changed)) == sorted(names)
    assert all(row[1] for row in rows)
