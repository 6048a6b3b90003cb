"""Functions that a schedule of their own starts and that may publish to the topic."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from stacks.functions import Functions
from stacks.storage import Storage


@dataclass(frozen=True)
class Timetable:
    """When a function runs, in UTC: EventBridge rules know no other time zone.

    ``rule`` is the construct id of the rule.
    """

    rule: str
    description: str
    schedule: events.Schedule


WEEKLY_DIGEST = Timetable(
    "EveryMonday",
    "Tells every owner what their week was like",
    events.Schedule.cron(week_day="MON", hour="7", minute="0"),
)
DAILY_SWEEP = Timetable(
    "EveryDay",
    "Stops jobs and releases locks of executions that have ended",
    events.Schedule.cron(hour="5", minute="30"),
)


class ScheduledFunction(Construct):
    """Starts the function ``name`` by ``timetable``; no state machine calls it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        timetable: Timetable,
        functions: Functions,
        topic: sns.ITopic,
        storage: Storage,
        dead_letters: sqs.IQueue,
    ) -> None:
        super().__init__(scope, construct_id)
        _may_publish(functions.by_name[name], topic, storage)
        live = functions.live[name]
        # Tried again, it would send once more what it has sent already.
        live.configure_async_invoke(retry_attempts=0, on_failure=SqsDestination(dead_letters))
        target = targets.LambdaFunction(live, retry_attempts=0, dead_letter_queue=dead_letters)
        events.Rule(
            self,
            timetable.rule,
            description=timetable.description,
            schedule=timetable.schedule,
            targets=[target],
        )


def _may_publish(function: lambda_.Function, topic: sns.ITopic, storage: Storage) -> None:
    function.add_environment("TOPIC_ARN", topic.topic_arn)
    for statement in (
        iam.PolicyStatement(actions=["sns:Publish"], resources=[topic.topic_arn]),
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[storage.key.key_arn]
        ),
    ):
        function.add_to_role_policy(statement)
