"""Who is told: decisions, and whatever went wrong, on one encrypted topic."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from compilegate.domain.metrics import FLAG_PROBLEMS, NAMESPACE, STAGE
from stacks.settings import Settings
from stacks.storage import Storage
from stacks.subscribers import subscribe

PERIOD = Duration.minutes(5)


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
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsMayPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        subscribe(self, self.topic, settings.recipients, stage=settings.stage)

    def watch(self, machine: sfn.StateMachine, what: str, *, prefix: str) -> None:
        """An alarm per way an execution of ``machine``, a ``what``, can end badly."""
        for ending, metric in (
            ("failed", machine.metric_failed(period=PERIOD)),
            ("timed out", machine.metric_timed_out(period=PERIOD)),
            ("aborted", machine.metric_aborted(period=PERIOD)),
        ):
            self._alarm(
                f"{prefix}{ending.title().replace(' ', '')}",
                metric,
                f"A {what} {ending}: `compilegate status` shows why",
            )

    def watch_functions(self, functions: Mapping[str, lambda_.Function]) -> None:
        """An alarm per function."""
        for name, function in functions.items():
            self._alarm(
                f"{name.title().replace('_', '')}Errors",
                function.metric_errors(period=PERIOD),
                f"The function {name} raised an error: its log group says which",
            )

    def watch_flags(self) -> None:
        """An alarm for production runs that could not follow their flag."""
        self._alarm(
            "FlagProblems",
            cloudwatch.Metric(
                namespace=NAMESPACE,
                metric_name=FLAG_PROBLEMS,
                dimensions_map={STAGE: self._stage},
                statistic="Sum",
                period=PERIOD,
            ),
            "A production run trained the baseline because its flag could not be followed: "
            "`compilegate flag history` and the log of read-flag say why",
        )

    def watch_schedules(self, dropped: cloudwatch.IMetric) -> None:
        """An alarm for runs that no schedule could start."""
        self._alarm(
            "SchedulesDropped",
            dropped,
            "A scheduled production run was given up before it started: the role of the schedules, "
            "or the rate at which executions may start, says why",
        )

    def watch_dead_letters(self, waiting: cloudwatch.IMetric) -> None:
        """An alarm for events that were lost: a clean-up, a record or a message is missing."""
        self._alarm(
            "DeadLetters",
            waiting,
            "An event could not be delivered, or a function failed on it after its retries: the "
            "messages of the dead-letter queue say which",
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
