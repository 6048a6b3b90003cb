"""One stage of Compilegate: everything it owns, wired together."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CfnOutput, Environment, Stack, Tags
from constructs import Construct

from compilegate.domain import naming
from stacks.evaluate.construct import Evaluate
from stacks.functions import EVALUATE, TRAIN, Functions
from stacks.machine import Surroundings
from stacks.notifications import Notifications
from stacks.schedules import Schedules
from stacks.settings import Settings
from stacks.storage import Storage
from stacks.train.construct import Train
from stacks.training_role import TrainingRole
from stacks.weekly_digest import WeeklyDigest


class CompilegateStack(Stack):
    """The account stays open until deployment, so that synthesis needs none."""

    def __init__(self, scope: Construct, *, settings: Settings, bundle: Path) -> None:
        super().__init__(
            scope,
            "Compilegate",  # not the stage's name, which would get into logical ids
            stack_name=naming.stack_name(settings.stage),
            env=Environment(region=settings.region),
            description="Compilegate: proves whether a graph compiler pays, workload by workload",
        )
        storage = Storage(self, "Storage", settings=settings)
        role = TrainingRole(self, "Training", storage=storage, settings=settings)
        functions = Functions(
            self,
            "Functions",
            storage=storage,
            training_role=role,
            settings=settings,
            bundle=bundle,
        )
        notifications = Notifications(self, "Notifications", storage=storage, settings=settings)

        def around(machine: str) -> Surroundings:
            return Surroundings(
                functions=functions.of(machine),
                storage=storage,
                training_role=role,
                topic=notifications.topic,
                settings=settings,
            )

        evaluate = Evaluate(self, "Evaluate", around=around(EVALUATE))
        train = Train(self, "Train", around=around(TRAIN))
        schedules = Schedules(self, "Schedules", machine=train.machine, settings=settings)
        WeeklyDigest(
            self,
            "WeeklyDigest",
            function=functions.by_name["weekly_digest"],
            topic=notifications.topic,
            storage=storage,
        )
        notifications.watch(evaluate.machine, "trial", prefix="Executions")
        notifications.watch(train.machine, "production run", prefix="ProductionRuns")
        notifications.watch_functions(functions.by_name)
        notifications.watch_flags()
        notifications.watch_schedules(schedules.dropped())
        Tags.of(self).add("application", "compilegate")
        Tags.of(self).add(naming.TAG_DEPLOYMENT, settings.stage)
        for output, value in (
            ("Stage", settings.stage),
            ("DataBucket", storage.bucket.bucket_name),
            ("LedgerTable", storage.table.table_name),
            ("EvaluateStateMachine", evaluate.machine.state_machine_arn),
            ("TrainStateMachine", train.machine.state_machine_arn),
            ("ScheduleGroup", schedules.group.schedule_group_name),
            ("SchedulerRole", schedules.role.role_arn),
            ("DecisionTopic", notifications.topic.topic_arn),
            ("TrainingRole", role.role_arn),
        ):
            CfnOutput(self, output, value=value)
