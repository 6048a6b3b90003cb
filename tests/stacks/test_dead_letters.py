"""No event is lost without a trace: every target and every asynchronous call has a queue."""

import pytest

from compilegate.domain.naming import LIVE
from tests.stacks.template import as_list

# Called by EventBridge, which does not wait for an answer.
ASYNCHRONOUS = {"abort_trial", "record_run", "sweep", "weekly_digest"}


@pytest.fixture(scope="module")
def queue(template):
    (key,) = template.of_type("AWS::SQS::Queue")
    return key


def targets(template):
    """Every target of every rule."""
    rules = template.of_type("AWS::Events::Rule").values()
    return [target for rule in rules for target in rule["Properties"]["Targets"]]


def async_configs(template):
    """Function's folder → its configuration for asynchronous calls."""
    folders = {template.function(name)[0]: name for name in ASYNCHRONOUS}
    return {
        folders[config["Properties"]["FunctionName"]["Ref"]]: config["Properties"]
        for config in template.of_type("AWS::Lambda::EventInvokeConfig").values()
    }


def test_every_event_target_has_the_queue(template, queue):
    assert targets(template)
    for target in targets(template):
        assert {"Fn::GetAtt": [queue, "Arn"]} == target["DeadLetterConfig"]["Arn"]


def test_every_function_that_events_call_sends_its_failures_to_the_queue(template, queue):
    configs = async_configs(template)

    assert ASYNCHRONOUS == set(configs)
    for name, config in configs.items():
        destination = config["DestinationConfig"]["OnFailure"]["Destination"]
        assert {"Fn::GetAtt": [queue, "Arn"]} == destination
        assert f"<{queue}.Arn>" in template.allowed("sqs:SendMessage")[name]


def test_events_call_the_newest_version_by_its_alias(template):
    aliases = template.of_type("AWS::Lambda::Alias")
    machines = template.of_type("AWS::StepFunctions::StateMachine")
    called = {target["Arn"]["Ref"] for target in targets(template)}
    permitted = {
        item["Properties"]["FunctionName"]["Ref"]
        for item in template.of_type("AWS::Lambda::Permission").values()
    }

    assert called - set(machines) == permitted
    assert permitted <= set(aliases)
    assert {LIVE} == {alias["Properties"]["Name"] for alias in aliases.values()}


def test_rules_and_failing_functions_are_all_that_write_to_the_queue(template):
    statements = template.one("AWS::SQS::QueuePolicy")["Properties"]["PolicyDocument"]["Statement"]
    allowed = [statement for statement in statements if statement["Effect"] == "Allow"]

    rules = set(template.of_type("AWS::Events::Rule"))
    assert {"events.amazonaws.com"} == {item["Principal"]["Service"] for item in allowed}
    sources = [item["Condition"]["ArnEquals"]["aws:SourceArn"] for item in allowed]
    assert rules == {source["Fn::GetAtt"][0] for source in sources}
    assert ASYNCHRONOUS == set(template.allowed("sqs:SendMessage"))


def test_the_queue_is_encrypted_refuses_plain_text_and_keeps_two_weeks(template):
    properties = template.one("AWS::SQS::Queue")["Properties"]
    policy = template.one("AWS::SQS::QueuePolicy")["Properties"]["PolicyDocument"]["Statement"]

    assert properties["SqsManagedSseEnabled"] is True
    assert 14 * 24 * 3600 == properties["MessageRetentionPeriod"]
    denied = [item["Condition"] for item in policy if item["Effect"] == "Deny"]
    assert [{"Bool": {"aws:SecureTransport": "false"}}] == denied


def test_a_message_in_the_queue_raises_an_alarm(template, queue):
    (alarm,) = [
        item["Properties"]
        for item in template.of_type("AWS::CloudWatch::Alarm").values()
        if item["Properties"]["Namespace"] == "AWS/SQS"
    ]

    assert "ApproximateNumberOfMessagesVisible" == alarm["MetricName"]
    assert [queue] == [item["Value"]["Fn::GetAtt"][0] for item in alarm["Dimensions"]]
    assert (1, "Maximum") == (alarm["Threshold"], alarm["Statistic"])
    assert as_list(alarm["AlarmActions"])
