"""Subscribes whom the context names to the topic."""

from __future__ import annotations

from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from compilegate.domain import naming
from stacks.recipients import Recipients, Slack

READS_METRICS = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListMetrics",
)


def subscribe(scope: Construct, topic: sns.Topic, told: Recipients, *, stage: str) -> None:
    """Let ``topic`` reach everyone whom the context names."""
    if told.email:
        topic.add_subscription(subscriptions.EmailSubscription(told.email))
    for owner, address in sorted(told.owner_emails.items()):
        # What names no owner (alarms of the deployment itself) is for ``email`` alone.
        policy = {"owner": sns.SubscriptionFilter.string_filter(allowlist=[owner])}
        topic.add_subscription(subscriptions.EmailSubscription(address, filter_policy=policy))
    if told.slack:
        _tell_channel(scope, topic, told.slack, stage)


def _tell_channel(scope: Construct, topic: sns.Topic, slack: Slack, stage: str) -> None:
    """Post to a channel, in which nobody can do anything to the account.

    The service applies AdministratorAccess as guardrail where none is named (API reference of
    CreateSlackChannelConfiguration). Alarms are drawn as charts, which takes reading metrics.
    """
    role = iam.Role(
        scope,
        "ChannelRole",
        description=f"Compilegate {stage}: charts of alarms in the chat channel",
        assumed_by=iam.ServicePrincipal("chatbot.amazonaws.com"),
    )
    role.add_to_policy(iam.PolicyStatement(actions=list(READS_METRICS), resources=["*"]))
    guardrail = iam.ManagedPolicy.from_aws_managed_policy_name("CloudWatchReadOnlyAccess")
    chatbot.SlackChannelConfiguration(
        scope,
        "Channel",
        slack_channel_configuration_name=naming.stack_name(stage),
        slack_workspace_id=slack.workspace_id,
        slack_channel_id=slack.channel_id,
        notification_topics=[topic],
        role=role,
        guardrail_policies=[guardrail],
    )
