"""A state machine that starts training jobs, as deployed: role, logs, tracing, and the clean-up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from aws_cdk import Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.deployment_settings import Settings
from stacks.job_roles import JobRoles
from stacks.permissions import Permissions, Statements, allow
from stacks.states import INTEGRATIONS, State
from stacks.storage import MACHINE_LOGS, Storage

# Step Functions learns of a job's end from this rule, which it makes and owns itself.
SYNC_RULE = "StepFunctionsGetEventsForSageMakerTrainingJobsRule"
ENDED_BADLY = ("FAILED", "TIMED_OUT", "ABORTED")


@dataclass(frozen=True)
class MachineContext:
    """What every machine of a deployment works with; ``functions`` by their step's name.

    ``live`` are their aliases, for callers that want the newest code.
    """

    functions: Mapping[str, lambda_.Function]
    live: Mapping[str, lambda_.Alias]
    storage: Storage
    jobs: JobRoles
    topic: sns.ITopic
    dead_letters: sqs.IQueue
    settings: Settings

    @property
    def arns(self) -> dict[str, str]:
        """ARNs of the functions' versions of this deployment.

        A running execution keeps its definition, and with it the code that it began with.
        """
        return {
            name: function.current_version.function_arn for name, function in self.functions.items()
        }


class Definition(Protocol):
    """A machine's definition from the ARNs of its functions, by step."""

    def __call__(self, functions: Mapping[str, str], *, bucket: str, topic_arn: str) -> State:
        """The document."""


class TrainingMachine(Construct):
    """``machine`` runs ``definition``; ``clean_up`` is invoked when an execution ends badly.

    ``requests`` are the keys of the requests that it may read and send.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        around: MachineContext,
        definition: Definition,
        requests: str,
        clean_up: lambda_.Alias,
        what: str,
    ) -> None:
        super().__init__(scope, construct_id)
        document = definition(
            around.arns,
            bucket=around.storage.bucket.bucket_name,
            topic_arn=around.topic.topic_arn,
        )
        self.machine = self._machine(in_partition(document, Stack.of(self).partition), around)
        permissions = Permissions(around.storage, around.settings)
        for statement in (
            *_invoke(around.functions),
            *permissions.read(requests),
            *_train(permissions, around.jobs, self),
            *permissions.publish(around.topic),
        ):
            self.machine.add_to_role_policy(statement)
        self._clean_up_with(clean_up, what, around.dead_letters)

    def _machine(self, document: State, around: MachineContext) -> sfn.StateMachine:
        name = naming.machine_name(around.settings.stage, self.node.id.lower())
        group = around.storage.log_group(self, "Logs", name=f"{MACHINE_LOGS}{name}")
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

    def _clean_up_with(self, function: lambda_.Alias, what: str, dead_letters: sqs.IQueue) -> None:
        """A stopped execution, its own time limit and States.Runtime run no Catch."""
        function.configure_async_invoke(on_failure=SqsDestination(dead_letters))
        events.Rule(
            self,
            "EndedBadly",
            description=f"Cleans up after {what} that failed, timed out or was stopped",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "stateMachineArn": [self.machine.state_machine_arn],
                    "status": list(ENDED_BADLY),
                },
            ),
            targets=[targets.LambdaFunction(function, dead_letter_queue=dead_letters)],
        )


def in_partition(document: State, partition: str) -> State:
    """A definition whose integrations have the ARNs of a partition."""
    text = json.dumps(document)
    changed: State = json.loads(text.replace(f'"{INTEGRATIONS}', f'"arn:{partition}:states:::'))
    return changed


def _invoke(functions: Mapping[str, lambda_.Function]) -> Statements:
    """Every version: a running execution calls those of the deployment that it began under.

    Executions from before functions had versions call the functions themselves.
    """
    arns = [
        arn
        for function in functions.values()
        for arn in (function.function_arn, f"{function.function_arn}:*")
    ]
    return [allow(["lambda:InvokeFunction"], arns)]


def _train(permissions: Permissions, roles: JobRoles, scope: Construct) -> Statements:
    rule = Stack.of(scope).format_arn(service="events", resource="rule", resource_name=SYNC_RULE)
    jobs = ("AddTags", "CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob")
    to_sagemaker = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return [
        allow([f"sagemaker:{action}" for action in jobs], [permissions.training_jobs()]),
        allow(["iam:PassRole"], [roles.all], to_sagemaker),
        allow(["events:DescribeRule", "events:PutRule", "events:PutTargets"], [rule]),
    ]
