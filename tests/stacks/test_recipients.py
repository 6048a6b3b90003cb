"""Who is told: nobody by default, then those whom the context names, and no further."""

import json

from tests.stacks.template import as_list


def subscriptions(template):
    found = template.of_type("AWS::SNS::Subscription").values()
    return {item["Properties"]["Endpoint"]: item["Properties"] for item in found}


def test_by_default_nobody_is_told(template):
    assert {} == template.of_type("AWS::SNS::Subscription")
    assert {} == template.of_type("AWS::Chatbot::SlackChannelConfiguration")


def test_one_address_is_told_everything_and_an_owner_s_what_is_theirs(changed):
    told = subscriptions(changed)

    assert {"team@example.com", "ml@example.com"} == set(told)
    assert "FilterPolicy" not in told["team@example.com"]
    assert {"owner": ["ml-platform"]} == told["ml@example.com"]["FilterPolicy"]


def test_a_channel_is_told_by_the_topic_under_a_guardrail_that_reads_metrics_only(changed):
    properties = changed.one("AWS::Chatbot::SlackChannelConfiguration")["Properties"]

    assert ("T01ABC", "C02DEF") == (properties["SlackWorkspaceId"], properties["SlackChannelId"])
    (topic,) = properties["SnsTopicArns"]
    assert [topic["Ref"]] == list(changed.of_type("AWS::SNS::Topic"))
    (guardrail,) = properties["GuardrailPolicies"]
    assert json.dumps(guardrail).count("CloudWatchReadOnlyAccess") == 1


def test_the_channel_s_role_reads_metrics_and_nothing_else(changed):
    (key,) = {
        name
        for name, role in changed.of_type("AWS::IAM::Role").items()
        if "chatbot.amazonaws.com" in json.dumps(role)
    }
    attached = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for policy in changed.of_type("AWS::IAM::Policy").values()
        if {"Ref": key} in policy["Properties"]["Roles"]
    ]

    ((statement,),) = attached
    assert {
        "cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics",
        "cloudwatch:ListMetrics",
    } == set(as_list(statement["Action"]))  # fmt: skip
    assert "ManagedPolicyArns" not in changed.of_type("AWS::IAM::Role")[key]["Properties"]
