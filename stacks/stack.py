"""One stage of Compilegate: everything it owns, wired together."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CfnOutput, DefaultStackSynthesizer, Environment, Stack, Tags
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.deployment_settings import Settings
from compilegate.domain.naming import EVALUATE, TRAIN
from stacks.budget import Budget
from stacks.dashboard import Dashboard
from stacks.evaluate import Evaluate
from stacks.functions import SCHEDULE, STREAM, Functions
from stacks.job_roles import JobRoles
from stacks.machine import MachineContext
from stacks.notifications import DeadLetters, Notifications, Watched
from stacks.organisation import follow_rules
from stacks.permissions import Permissions
from stacks.projection import Projection
from stacks.schedules import DAILY_SWEEP, WEEKLY_DIGEST, ScheduledFunction, Schedules
from stacks.storage import Storage
from stacks.train import Train


class CompilegateStack(Stack):
    """The account stays open until deployment, so that synthesis needs none."""

    def __init__(self, scope: Construct, *, settings: Settings, bundle: Path) -> None:
        super().__init__(
            scope,
            "Compilegate",  # not the stage's name, which would get into logical ids
            stack_name=naming.stack_name(settings.stage),
            env=Environment(region=settings.region),
            synthesizer=DefaultStackSynthesizer(qualifier=settings.bootstrap_qualifier),
            tags=dict(settings.tags) or None,
            description="Compilegate: proves whether a graph compiler pays, workload by workload",
        )
        self._settings = settings
        self._storage = storage = Storage(self, "Storage", settings=settings)
        self._jobs = JobRoles(self, "Jobs", storage=storage, settings=settings)
        functions = Functions(
            self,
            "Functions",
            storage=storage,
            jobs=self._jobs,
            settings=settings,
            bundle=bundle,
        )
        self._notifications = Notifications(
            self, "Notifications", storage=storage, settings=settings
        )
        self._dead_letters = DeadLetters(self, "DeadLetters")
        evaluate = Evaluate(self, "Evaluate", around=self._around(functions, EVALUATE))
        train = Train(self, "Train", around=self._around(functions, TRAIN))
        schedules = Schedules(self, "Schedules", machine=train.machine, settings=settings)
        self._start_by_schedule(functions)
        Projection(self, "Projection", around=self._around(functions, STREAM))
        self._set_budget()
        watched = Watched(
            evaluate=evaluate.machine,
            train=train.machine,
            functions=functions.by_name,
            dropped_schedules=schedules.dropped(),
            dead_letters=self._dead_letters.waiting(),
        )
        self._notifications.watch(watched)
        Dashboard(self, "Dashboard", stage=settings.stage, watched=watched)
        # IAM, unlike others, takes keys that differ by case for one, and refuses both.
        if "application" not in {key.casefold() for key in settings.tags}:
            Tags.of(self).add("application", "compilegate")
        Tags.of(self).add(naming.TAG_DEPLOYMENT, settings.stage)
        follow_rules(self, settings)
        self._output(evaluate, train, schedules)

    def _start_by_schedule(self, functions: Functions) -> None:
        """Functions that no state machine calls."""
        around = self._around(functions, SCHEDULE)
        for construct_id, name, timetable in (
            ("WeeklyDigest", "weekly_digest", WEEKLY_DIGEST),
            ("DailySweep", "sweep", DAILY_SWEEP),
        ):
            ScheduledFunction(self, construct_id, name=name, timetable=timetable, around=around)
        days = self._settings.training_log_retention_days
        if days is not None:
            # The log group of training jobs belongs to SageMaker and to the whole account.
            sweep = functions.by_name["sweep"]
            sweep.add_environment("TRAINING_LOG_DAYS", str(days))
            for statement in Permissions(self._storage, self._settings).limit_training_logs():
                sweep.add_to_role_policy(statement)

    def _set_budget(self) -> None:
        if self._settings.monthly_budget_usd is not None:
            Budget(
                self,
                "Budget",
                usd=self._settings.monthly_budget_usd,
                stage=self._settings.stage,
                topic=self._notifications.topic,
                storage=self._storage,
            )

    def _around(self, functions: Functions, machine: str) -> MachineContext:
        return MachineContext(
            functions=functions.of(machine),
            live=functions.live,
            storage=self._storage,
            jobs=self._jobs,
            topic=self._notifications.topic,
            dead_letters=self._dead_letters.queue,
            settings=self._settings,
        )

    def _output(self, evaluate: Evaluate, train: Train, schedules: Schedules) -> None:
        """What commands and teams look up."""
        for output, value in (
            ("Stage", self._settings.stage),
            ("DataBucket", self._storage.bucket.bucket_name),
            ("LedgerTable", self._storage.table.table_name),
            ("EvaluateStateMachine", evaluate.machine.state_machine_arn),
            ("TrainStateMachine", train.machine.state_machine_arn),
            ("ScheduleGroup", schedules.group.schedule_group_name),
            ("SchedulerRole", schedules.role.role_arn),
            ("DeadLetterQueue", self._dead_letters.queue.queue_url),
            ("DecisionTopic", self._notifications.topic.topic_arn),
            ("JobRoles", self._jobs.names),
            ("JobPolicy", self._jobs.policy.managed_policy_arn),
        ):
            CfnOutput(self, output, value=value)
