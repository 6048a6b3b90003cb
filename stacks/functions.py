"""The Lambdas: one shared bundle, one role each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.naming import EVALUATE, LIVE, TRAIN
from stacks.log_groups import FUNCTIONS as FUNCTION_LOGS
from stacks.log_groups import log_group
from stacks.permissions import (
    JOB_OUTPUTS,
    PRODUCTION_OUTPUTS,
    PRODUCTION_REQUESTS,
    RECORDS,
    REGISTRATIONS,
    REPORTS,
    REQUESTS,
    SPECS,
    STOPS,
    Permissions,
)
from stacks.settings import Settings
from stacks.storage import Storage

Statements = list[iam.PolicyStatement]
# What calls the functions that no state machine does.
SCHEDULE = "schedule"
# A version stays when the next one replaces it, because executions that run still call it; one
# that was published by a deployment that failed goes. All go with their function.
KEEP_VERSION = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


@dataclass(frozen=True)
class Step:
    """One function: its step in lambdas/handlers.py, what it may do, its size, and who calls it."""

    name: str
    may: Callable[[Permissions], Statements]
    seconds: int = 60
    megabytes: int = 512  # processor time comes with memory: below this, imports dominate
    machine: str = EVALUATE


STEPS = (
    Step(
        "acquire_lock",
        lambda can: [*can.take_lease(), *can.read_ledger(), *can.append_to_ledger()],
    ),
    Step(
        "check_eligibility",
        lambda can: [
            *can.read(SPECS, RECORDS),
            *can.tell_absent_from_denied(),
            *can.read_ledger(),
            *can.write(RECORDS),
        ],
    ),
    Step(
        "plan_trial",
        lambda can: [
            *can.read(SPECS, REGISTRATIONS, RECORDS),
            *can.tell_absent_from_denied(),
            *can.read_ledger(),
            *can.write(RECORDS),
            *can.read_quotas(),
        ],
    ),
    Step(
        "judge_arms",
        lambda can: [
            # Requests too: which arms a speed job on nodes of its own was asked to measure.
            *can.read(SPECS, RECORDS, JOB_OUTPUTS, STOPS, REQUESTS),
            *can.tell_absent_from_denied(),
            *can.write(RECORDS, REQUESTS),
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.stop_jobs(),
        ],
        seconds=300,
        megabytes=1024,
    ),
    Step(
        "settle_run",
        lambda can: [
            *can.read(SPECS, RECORDS, JOB_OUTPUTS, STOPS),
            *can.tell_absent_from_denied(),
            *can.write(STOPS, REQUESTS),
            *can.stop_jobs(),
        ],
        seconds=300,
        megabytes=1024,
    ),
    Step(
        "open_canary",
        lambda can: [
            *can.read(SPECS, RECORDS),
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.take_lease(),
            *can.answer_tokens(),
        ],
    ),
    Step(
        "record_decision",
        lambda can: [
            *can.read(SPECS, RECORDS),
            *can.tell_absent_from_denied(),
            *can.append_to_ledger(),
        ],
    ),
    Step(
        "ask_approval",
        lambda can: [*can.read(SPECS, RECORDS), *can.append_to_ledger(), *can.take_lease()],
    ),
    Step(
        "await_approval",
        lambda can: [*can.read_ledger(), *can.append_to_ledger(), *can.answer_tokens()],
    ),
    Step("close_approval", lambda can: [*can.read_ledger(), *can.append_to_ledger()]),
    Step(
        "apply_flag",
        lambda can: [
            *can.read(SPECS, RECORDS),
            *can.write(RECORDS),
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.write_flag(),
        ],
    ),
    Step(
        "release_models",
        lambda can: [*can.read(RECORDS), *can.read_ledger(), *can.tag_models()],
    ),
    Step(
        "write_report",
        lambda can: [
            *can.read(SPECS, RECORDS),
            *can.tell_absent_from_denied(),
            *can.write(REPORTS),
        ],
        seconds=120,
        megabytes=1024,
    ),
    Step("release_lock", lambda can: can.give_lease_back()),
    Step(
        "abort_trial",
        lambda can: [
            *can.stop_jobs(),
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.tag_models(),
            *can.give_lease_back(),
        ],
        seconds=120,
    ),
    Step(
        "read_flag",
        lambda can: [
            # Records too: what a flag was proven on is compared with what the run would train.
            *can.read(SPECS, REGISTRATIONS, RECORDS),
            *can.tell_absent_from_denied(),
            *can.read_ledger(),
            *can.append_to_ledger(),
            # Where the parameter is not what the ledger says, it is written again.
            *can.write_flag(),
        ],
        megabytes=1024,
        machine=TRAIN,
    ),
    Step(
        "build_request",
        lambda can: [
            *can.read(SPECS),
            *can.read_ledger(),
            *can.write(PRODUCTION_REQUESTS),
        ],
        megabytes=1024,
        machine=TRAIN,
    ),
    Step(
        "record_run",
        lambda can: [
            *can.read(SPECS, REGISTRATIONS, PRODUCTION_OUTPUTS),
            *can.read_inputs(),
            *can.tell_absent_from_denied(),
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.stop_jobs(),
            *can.look_at_team_jobs(),
            *can.answer_tokens(),
            *can.tag_models(),
            # After a team's own run: nobody else compares its parameter with the ledger.
            *can.write_flag(),
        ],
        seconds=300,
        megabytes=1024,
        machine=TRAIN,
    ),
    Step(
        "watch_production",
        lambda can: [
            *can.read(SPECS, REGISTRATIONS, RECORDS),
            *can.tell_absent_from_denied(),
            *can.write(RECORDS, REPORTS),
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.write_flag(),
        ],
        seconds=120,
        megabytes=1024,
        machine=TRAIN,
    ),
    Step(
        "weekly_digest",
        lambda can: [
            *can.read(SPECS, REGISTRATIONS, RECORDS),
            *can.tell_absent_from_denied(),  # and lists which workloads there are
            *can.read_ledger(),
        ],
        seconds=540,
        megabytes=1769,  # a whole processor: ten thousand workloads are parsed
        machine=SCHEDULE,
    ),
    Step(
        "sweep",
        lambda can: [
            *can.stop_jobs(),
            *can.read_tags_of_jobs(),
            *can.read_executions(),
            *can.tell_absent_from_denied(),  # and lists which workloads there are
            *can.read_ledger(),
            *can.append_to_ledger(),
            *can.tag_models(),
            *can.read_lease(),
            *can.give_lease_back(),
        ],
        seconds=540,
        megabytes=1769,  # as the digest: it reads the ledger of every workload
        machine=SCHEDULE,
    ),
)


class Functions(Construct):
    """``by_name`` holds every function by its step's name, ``of`` those of one machine.

    A deployment publishes what it changed as a new version. ``live`` holds an alias per function
    that names the newest one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        storage: Storage,
        training_role: iam.IRole,
        settings: Settings,
        bundle: Path,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._log_key = storage.log_key
        self._code = lambda_.Code.from_asset(str(bundle))
        self._environment = {
            "DATA_BUCKET": storage.bucket.bucket_name,
            "DATA_KEY_ARN": storage.data_key.key_arn,
            "LEDGER_TABLE": storage.table.table_name,
            "STAGE": settings.stage,
            "TRAINING_ROLE_ARN": training_role.role_arn,
            "SETTINGS": settings.for_functions(),
        }
        permissions = Permissions(storage, settings.stage, settings.input_buckets)
        self.by_name: Mapping[str, lambda_.Function] = {
            step.name: self._function(step, permissions) for step in STEPS
        }
        self.live: Mapping[str, lambda_.Alias] = {
            name: self._alias(name, function) for name, function in self.by_name.items()
        }

    def of(self, machine: str) -> dict[str, lambda_.Function]:
        """The functions that one machine calls."""
        return {step.name: self.by_name[step.name] for step in STEPS if step.machine == machine}

    def _alias(self, name: str, function: lambda_.Function) -> lambda_.Alias:
        return lambda_.Alias(
            self, f"{_title(name)}Live", alias_name=LIVE, version=function.current_version
        )

    def _function(self, step: Step, permissions: Permissions) -> lambda_.Function:
        title = _title(step.name)
        name = f"{naming.stack_name(self._settings.stage)}-{step.name.replace('_', '-')}"
        group = log_group(
            self,
            f"{title}Logs",
            name=f"{FUNCTION_LOGS}{name}",
            settings=self._settings,
            key=self._log_key,
        )
        role = iam.Role(
            self,
            f"{title}Role",
            description=f"Compilegate {self._settings.stage}: {step.name}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        )
        group.grant_write(role)
        for statement in step.may(permissions):
            role.add_to_policy(statement)
        return lambda_.Function(
            self,
            title,
            function_name=name,
            description=f"Compilegate {self._settings.stage}: {step.name.replace('_', ' ')}",
            runtime=lambda_.Runtime.PYTHON_3_12,
            architecture=lambda_.Architecture.X86_64,
            code=self._code,
            handler=f"lambdas.handlers.{step.name}",
            environment=self._environment,
            role=role,
            timeout=Duration.seconds(step.seconds),
            memory_size=step.megabytes,
            log_group=group,
            logging_format=lambda_.LoggingFormat.JSON,
            tracing=lambda_.Tracing.ACTIVE,
            current_version_options=lambda_.VersionOptions(removal_policy=KEEP_VERSION),
        )


def _title(name: str) -> str:
    return name.title().replace("_", "")
