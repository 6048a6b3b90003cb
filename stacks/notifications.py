"""The topic that carries decisions and alarms, its subscribers, and the dead-letter queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.arithmetic import FLAG_PROBLEMS, NAMESPACE, ROWS_REPAIRED, STAGE
from compilegate.domain.deployment_settings import Settings, Slack
from stacks.storage import OWN_ACCOUNT, Storage

PERIOD = Duration.minutes(5)
# The longest that SQS keeps a message.
RETENTION = Duration.days(14)
READS_METRICS = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "cloudwatch:GetMetricStatistics",
    "cloudwatch:ListMetrics",
)
FLAG_NOT_FOLLOWED = (
    "A production run trained the baseline because its flag could not be followed: "
    "`compilegate flag history` and the log of begin-run show why"
)
ROW_REPAIRED = (
    "The daily pass found rows that were not what their ledgers say, and folded them anew: the log "
    "of sweep names the workloads"
)
RUN_NOT_STARTED = (
    "A scheduled production run could not be started: check the role of the schedules, and the "
    "rate at which executions may start"
)
EVENT_LOST = (
    "An event could not be delivered, or a function failed on it after its retries: the messages "
    "of the dead-letter queue show which"
)


@dataclass(frozen=True)
class Watched:
    """What alarms and the dashboard are about."""

    evaluate: sfn.StateMachine
    train: sfn.StateMachine
    functions: Mapping[str, lambda_.Function]
    dropped_schedules: cloudwatch.IMetric
    dead_letters: cloudwatch.IMetric


class Notifications(Construct):
    """``topic`` carries verdicts and alarms; subscribe people, chat or a pager to it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, storage: Storage, settings: Settings
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage = settings.stage
        self.topic = sns.Topic(
            self,
            "Decisions",
            display_name=f"Compilegate {settings.stage}",
            master_key=storage.key,
            enforce_ssl=True,
        )
        # A topic with a policy of its own loses the default one that let alarms in.
        alarms = may_publish("AlarmsMayPublish", "cloudwatch.amazonaws.com", self.topic)
        self.topic.add_to_resource_policy(alarms)
        _subscribe(self, self.topic, settings)

    def watch(self, watched: Watched) -> None:
        """An alarm for each way in which an execution, a function or an event can fail."""
        for machine, what, prefix in (
            (watched.evaluate, "trial", "Executions"),
            (watched.train, "production run", "ProductionRuns"),
        ):
            for ending, metric in (
                ("failed", machine.metric_failed(period=PERIOD)),
                ("timed out", machine.metric_timed_out(period=PERIOD)),
                ("aborted", machine.metric_aborted(period=PERIOD)),
            ):
                name = f"{prefix}{ending.title().replace(' ', '')}"
                self._alarm(name, metric, f"A {what} {ending}: `compilegate status` shows why")
        for name, function in watched.functions.items():
            self._alarm(
                f"{name.title().replace('_', '')}Errors",
                function.metric_errors(period=PERIOD),
                f"The function {name} raised an error: its log group shows which",
            )
        alarms: tuple[tuple[str, cloudwatch.IMetric, str], ...] = (
            ("FlagProblems", self._counted(FLAG_PROBLEMS), FLAG_NOT_FOLLOWED),
            ("RowsRepaired", self._counted(ROWS_REPAIRED), ROW_REPAIRED),
            ("SchedulesDropped", watched.dropped_schedules, RUN_NOT_STARTED),
            ("DeadLetters", watched.dead_letters, EVENT_LOST),
        )
        for name, watched_metric, description in alarms:
            self._alarm(name, watched_metric, description)

    def _counted(self, metric: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=metric,
            dimensions_map={STAGE: self._stage},
            statistic="Sum",
            period=PERIOD,
        )

    def _alarm(self, construct_id: str, metric: cloudwatch.IMetric, description: str) -> None:
        alarm = cloudwatch.Alarm(
            self,
            construct_id,
            alarm_description=f"Compilegate {self._stage}. {description}",
            metric=metric,
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Nothing running is the usual state, not a fault.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))


def may_publish(sid: str, service: str, topic: sns.Topic) -> iam.PolicyStatement:
    """A service of AWS may publish to ``topic``, for this account alone."""
    return iam.PolicyStatement(
        sid=sid,
        principals=[iam.ServicePrincipal(service)],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions=OWN_ACCOUNT,
    )


def _subscribe(scope: Construct, topic: sns.Topic, settings: Settings) -> None:
    """Subscribe the recipients that the context names."""
    if settings.notification_email:
        topic.add_subscription(subscriptions.EmailSubscription(settings.notification_email))
    for owner, address in sorted(settings.owner_emails.items()):
        # What names no owner (alarms of the deployment itself) is for ``notification_email`` alone.
        policy = {"owner": sns.SubscriptionFilter.string_filter(allowlist=[owner])}
        topic.add_subscription(subscriptions.EmailSubscription(address, filter_policy=policy))
    if settings.slack:
        _subscribe_channel(scope, topic, settings.slack, settings.stage)


def _subscribe_channel(scope: Construct, topic: sns.Topic, slack: Slack, stage: str) -> None:
    """Post to a channel from which nothing in the account can be changed.

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


class DeadLetters(Construct):
    """``queue`` takes what no target received and what a function failed on after its retries.

    Encrypted with a key of SQS: EventBridge may then write to it without a grant on a key.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=RETENTION,
        )

    def waiting(self) -> cloudwatch.IMetric:
        """The number of messages in the queue."""
        return self.queue.metric_approximate_number_of_messages_visible(
            period=PERIOD, statistic="Maximum"
        )
