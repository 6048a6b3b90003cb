"""The EVALUATE machine as deployed: role, logs, tracing, and the clean-up nobody can skip."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from compilegate.domain import naming
from stacks.evaluate.definition import definition
from stacks.log_groups import log_group
from stacks.permissions import REQUESTS, Permissions
from stacks.settings import Settings
from stacks.states import State
from stacks.storage import Storage

# Step Functions learns of a job's end from this rule, which it makes and owns itself.
SYNC_RULE = "StepFunctionsGetEventsForSageMakerTrainingJobsRule"
ENDED_BADLY = ("FAILED", "TIMED_OUT", "ABORTED")


class Evaluate(Construct):
    """``machine`` runs trials; an execution that ends badly is cleaned up after."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Mapping[str, lambda_.Function],
        storage: Storage,
        training_role: iam.IRole,
        topic: sns.ITopic,
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        document = definition(
            {step: function.function_arn for step, function in functions.items()},
            bucket=storage.bucket.bucket_name,
            topic_arn=topic.topic_arn,
        )
        self.machine = self._machine(document, settings)
        permissions = Permissions(storage, settings.stage)
        for statement in (
            *_invoke(functions),
            *permissions.read(REQUESTS),
            *_train(permissions, training_role, self),
            *_notify(topic, storage),
        ):
            self.machine.add_to_role_policy(statement)
        self._clean_up_with(functions["abort_trial"])

    def _machine(self, document: State, settings: Settings) -> sfn.StateMachine:
        name = f"{naming.stack_name(settings.stage)}-evaluate"
        # The name's prefix keeps the group out of the account's limit on log policies.
        group = log_group(self, "Logs", name=f"/aws/vendedlogs/states/{name}", settings=settings)
        return sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=name,
            definition_body=sfn.DefinitionBody.from_string(Stack.of(self).to_json_string(document)),
            logs=sfn.LogOptions(
                destination=group, level=sfn.LogLevel.ALL, include_execution_data=True
            ),
            tracing_enabled=True,
        )

    def _clean_up_with(self, abort: lambda_.IFunction) -> None:
        """A stopped execution, its own time limit and States.Runtime run no Catch."""
        events.Rule(
            self,
            "EndedBadly",
            description="Cleans up after a trial that failed, timed out or was stopped",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "stateMachineArn": [self.machine.state_machine_arn],
                    "status": list(ENDED_BADLY),
                },
            ),
            targets=[targets.LambdaFunction(abort)],
        )


def _invoke(functions: Mapping[str, lambda_.Function]) -> list[iam.PolicyStatement]:
    arns = [function.function_arn for function in functions.values()]
    return [iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=arns)]


def _train(
    permissions: Permissions, training_role: iam.IRole, scope: Construct
) -> list[iam.PolicyStatement]:
    rule = Stack.of(scope).format_arn(service="events", resource="rule", resource_name=SYNC_RULE)
    return [
        iam.PolicyStatement(
            actions=[
                "sagemaker:AddTags",
                "sagemaker:CreateTrainingJob",
                "sagemaker:DescribeTrainingJob",
                "sagemaker:StopTrainingJob",
            ],
            resources=[permissions.training_jobs()],
        ),
        iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=[training_role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
        ),
        iam.PolicyStatement(
            actions=["events:DescribeRule", "events:PutRule", "events:PutTargets"],
            resources=[rule],
        ),
    ]


def _notify(topic: sns.ITopic, storage: Storage) -> list[iam.PolicyStatement]:
    return [
        iam.PolicyStatement(actions=["sns:Publish"], resources=[topic.topic_arn]),
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[storage.key.key_arn]
        ),
    ]
