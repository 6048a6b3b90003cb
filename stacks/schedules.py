"""What EventBridge starts by the clock: production runs, and functions that no machine calls.

The schedules of production runs are not resources of this stack: `compilegate register` makes and
removes them, thousands of them without a deployment.
"""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.deployment_settings import Settings
from stacks.machine import MachineContext
from stacks.permissions import Permissions, allow

PERIOD = Duration.minutes(5)


class Schedules(Construct):
    """``group`` holds a schedule per workload; ``role`` may start production and nothing else."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        machine: sfn.IStateMachine,
        settings: Settings,
    ) -> None:
        super().__init__(scope, construct_id)
        # With the group its schedules go, too: what they start is gone with this stack. The CDK
        # would keep it, and a group that is left behind blocks the next deployment by its name.
        self.group = scheduler.ScheduleGroup(
            self,
            "Group",
            schedule_group_name=naming.stack_name(settings.stage),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            description=f"Compilegate {settings.stage}: schedules that start production runs",
            assumed_by=_schedules_of(self.group),
        )
        self.role.add_to_policy(allow(["states:StartExecution"], [machine.state_machine_arn]))

    def dropped(self) -> cloudwatch.Metric:
        """Runs that never started: their schedule gave up, and no execution is there to fail."""
        return self.group.metric_dropped(period=PERIOD, statistic="Sum")


def _schedules_of(group: scheduler.ScheduleGroup) -> iam.IPrincipal:
    """Schedules of this group alone: Scheduler serves every account as one service principal.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
    """
    return iam.ServicePrincipal(
        "scheduler.amazonaws.com",
        conditions={
            "StringEquals": {
                "aws:SourceAccount": Aws.ACCOUNT_ID,
                "aws:SourceArn": group.schedule_group_arn,
            }
        },
    )


@dataclass(frozen=True)
class Timetable:
    """When a function runs, in UTC: the only time zone of EventBridge rules.

    ``rule`` is the construct id of the rule. ``after_deployment``: also once after each.
    """

    rule: str
    description: str
    schedule: events.Schedule
    after_deployment: bool = False


WEEKLY_DIGEST = Timetable(
    "EveryMonday",
    "Sends every owner the weekly digest",
    events.Schedule.cron(week_day="MON", hour="7", minute="0"),
)
DAILY_SWEEP = Timetable(
    "EveryDay",
    "Stops jobs and releases locks of executions that have ended",
    events.Schedule.cron(hour="5", minute="30"),
    after_deployment=True,  # ledgers that have no rows yet get them
)
# Of this stack, as CloudFormation reports it.
DEPLOYED = events.EventPattern(
    source=["aws.cloudformation"],
    detail_type=["CloudFormation Stack Status Change"],
    detail={
        "stack-id": [Aws.STACK_ID],
        "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE"]},
    },
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
        around: MachineContext,
    ) -> None:
        super().__init__(scope, construct_id)
        function, live = around.functions[name], around.live[name]
        dead_letters = around.dead_letters
        function.add_environment("TOPIC_ARN", around.topic.topic_arn)
        for statement in Permissions(around.storage, around.settings).publish(around.topic):
            function.add_to_role_policy(statement)
        # A retry would send again what was sent already.
        live.configure_async_invoke(retry_attempts=0, on_failure=SqsDestination(dead_letters))
        target = targets.LambdaFunction(live, retry_attempts=0, dead_letter_queue=dead_letters)
        events.Rule(
            self,
            timetable.rule,
            description=timetable.description,
            schedule=timetable.schedule,
            targets=[target],
        )
        if timetable.after_deployment:
            events.Rule(
                self,
                "AfterDeployment",
                description=f"{timetable.description}, once after a deployment",
                event_pattern=DEPLOYED,
                targets=[target],
            )
