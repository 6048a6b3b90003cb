"""Where production's schedules live, and as whom they start it.

The schedules themselves are no resources of this stack: `compilegate register` makes and removes
them, thousands of them without a deployment.
"""

from __future__ import annotations

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from compilegate.domain import naming
from stacks.settings import Settings

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
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["states:StartExecution"], resources=[machine.state_machine_arn]
            )
        )

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
