"""Who is told, as the context names them; default nobody."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.fields import Fields

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
# Of Amazon Q Developer in chat applications (its service model: SlackTeamId, SlackChannelId).
WORKSPACE = re.compile(r"[0-9A-Z]{1,255}")
CHANNEL = re.compile(r"[A-Za-z0-9]{1,255}")


@dataclass(frozen=True)
class Slack:
    """A channel of a workspace that Amazon Q Developer was let into."""

    workspace_id: str
    channel_id: str


@dataclass(frozen=True)
class Recipients:
    """``email`` is told everything, ``owner_emails`` what is about workloads of one owner."""

    email: str | None = None
    owner_emails: Mapping[str, str] = field(default_factory=dict)
    slack: Slack | None = None


def recipients(fields: Fields) -> Recipients:
    """Read them; raises InvalidInputError naming key, value and fix."""
    return Recipients(
        email=_email(fields, "notification_email", required=False),
        owner_emails=_owner_emails(fields),
        slack=_slack(fields.optional_section("slack")),
    )


def _owner_emails(fields: Fields) -> dict[str, str]:
    named: Mapping[str, object] = fields.mapping("owner_emails")
    section = Fields(named, fields.path("owner_emails"))
    return {owner: str(_email(section, owner)) for owner in named}


def _email(fields: Fields, key: str, *, required: bool = True) -> str | None:
    value: str | None = fields.text(key) if required else fields.text(key, None)
    if value is not None and not EMAIL.fullmatch(value):
        raise fields.wrong(key, "is no e-mail address", "give one such as team@example.com")
    return value


def _slack(fields: Fields | None) -> Slack | None:
    if fields is None:
        return None
    slack = Slack(fields.text("workspace_id"), fields.text("channel_id"))
    for key, value, pattern in (
        ("workspace_id", slack.workspace_id, WORKSPACE),
        ("channel_id", slack.channel_id, CHANNEL),
    ):
        if not pattern.fullmatch(value):
            fix = f"copy it from Slack; it must match {pattern.pattern}"
            raise fields.wrong(key, "is no id of Slack's", fix)
    fields.done()
    return slack


READS_METRICS = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListMetrics",
)


def subscribe(scope: Construct, topic: sns.Topic, recipients: Recipients, *, stage: str) -> None:
    """Let ``topic`` reach everyone whom the context names."""
    if recipients.email:
        topic.add_subscription(subscriptions.EmailSubscription(recipients.email))
    for owner, address in sorted(recipients.owner_emails.items()):
        # What names no owner (alarms of the deployment itself) is for ``email`` alone.
        policy = {"owner": sns.SubscriptionFilter.string_filter(allowlist=[owner])}
        topic.add_subscription(subscriptions.EmailSubscription(address, filter_policy=policy))
    if recipients.slack:
        _tell_channel(scope, topic, recipients.slack, stage)


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
