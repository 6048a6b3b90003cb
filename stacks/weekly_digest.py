"""The week of every owner, told on Monday mornings."""

from __future__ import annotations

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.storage import Storage

# UTC, as EventBridge rules have it.
WHEN = events.Schedule.cron(week_day="MON", hour="7", minute="0")


class WeeklyDigest(Construct):
    """Starts ``function`` once a week and lets it tell the topic; nothing else starts it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        topic: sns.ITopic,
        storage: Storage,
    ) -> None:
        super().__init__(scope, construct_id)
        function.add_environment("TOPIC_ARN", topic.topic_arn)
        for statement in (
            iam.PolicyStatement(actions=["sns:Publish"], resources=[topic.topic_arn]),
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[storage.key.key_arn]
            ),
        ):
            function.add_to_role_policy(statement)
        # Tried again, it would tell those once more whom it has told already.
        function.configure_async_invoke(retry_attempts=0)
        events.Rule(
            self,
            "EveryMonday",
            description="Tells every owner what their week was like",
            schedule=WHEN,
            targets=[targets.LambdaFunction(function, retry_attempts=0)],
        )
