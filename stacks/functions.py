"""The Lambdas: one shared bundle, one role each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from compilegate.domain import naming
from compilegate.domain.deployment_settings import Settings, Vpc
from compilegate.domain.naming import EVALUATE, LIVE, TRAIN
from stacks.job_roles import JobRoles
from stacks.permissions import (
    ENDS,
    JOB_OUTPUTS,
    PRODUCTION_OUTPUTS,
    PRODUCTION_REQUESTS,
    RECORDS,
    REGISTRATIONS,
    REPORTS,
    REQUESTS,
    SPECS,
    STOPS,
    Grant,
    Permissions,
    allow,
    read,
    read_results,
    write,
)
from stacks.permissions import Permissions as can  # noqa: N813  # reads as a sentence below
from stacks.storage import FUNCTION_LOGS, Storage

# What calls the functions that no state machine does.
SCHEDULE, STREAM = "schedule", "stream"
# A version stays when the next one replaces it, because running executions still call it; one
# that was published by a deployment that failed goes. All go with their function.
KEEP_VERSION = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


@dataclass(frozen=True)
class Step:
    """One function: its step in lambdas/handlers.py, what it may do, its size, and its caller.

    ``makes_roles``: it makes the role of a workload's jobs before they are requested.
    """

    name: str
    may: tuple[Grant, ...]
    seconds: int = 60
    megabytes: int = 512  # processor time comes with memory: below this, imports dominate
    machine: str = EVALUATE
    makes_roles: bool = False


STEPS = (
    Step("acquire_lock", (
        can.take_lock, can.read_ledger, can.append_to_ledger,
        # From an execution that has ended it takes over, and cleans up after it.
        can.read_executions, can.give_lock_back, can.stop_jobs, can.tag_models,
        read(RECORDS), can.tell_absent_from_denied,
    )),
    Step("check_eligibility", (
        read(SPECS, RECORDS), can.tell_absent_from_denied, can.read_ledger, write(RECORDS),
    )),
    Step("plan_trial", (
        read(SPECS, REGISTRATIONS, RECORDS), can.tell_absent_from_denied, can.read_ledger,
        write(RECORDS), can.read_quotas, can.read_rows,
    ), makes_roles=True),
    Step("judge_arms", (
        # Requests too: which arms a speed job on nodes of its own was asked to measure.
        read(SPECS, RECORDS, STOPS, REQUESTS), read_results(JOB_OUTPUTS),
        can.tell_absent_from_denied,
        write(RECORDS, REQUESTS), can.read_ledger, can.append_to_ledger, can.stop_jobs,
    ), seconds=300, megabytes=1024),
    Step("on_job_ended", (
        read(SPECS, RECORDS, STOPS), read_results(JOB_OUTPUTS), can.tell_absent_from_denied,
        write(STOPS, ENDS, REQUESTS), can.stop_jobs,
    ), seconds=300, megabytes=1024),
    Step("open_canary", (
        read(SPECS, RECORDS), can.read_ledger, can.append_to_ledger, can.take_lock,
        can.answer_tokens,
    )),
    Step("record_decision", (
        read(SPECS, RECORDS), can.tell_absent_from_denied, can.append_to_ledger,
    )),
    Step("ask_approval", (read(SPECS, RECORDS), can.append_to_ledger, can.take_lock)),
    Step("await_approval", (can.read_ledger, can.append_to_ledger, can.answer_tokens)),
    Step("close_approval", (can.read_ledger, can.append_to_ledger)),
    Step("apply_flag", (
        read(SPECS, RECORDS), write(RECORDS), can.read_ledger, can.append_to_ledger,
        can.write_flag,
    )),
    Step("release_models", (read(RECORDS), can.read_ledger, can.tag_models)),
    Step("write_report", (
        read(SPECS, RECORDS), can.tell_absent_from_denied, write(REPORTS),
    ), seconds=120, megabytes=1024),
    Step("release_lock", (can.give_lock_back,)),
    Step("abort_trial", (
        can.stop_jobs, can.read_ledger, can.append_to_ledger, can.tag_models,
        can.give_lock_back,
        # The jobs of a trial are those of its requests, and their price is its plan's.
        read(RECORDS), can.tell_absent_from_denied,
    ), seconds=120),
    Step("begin_run", (
        # Records too: what a flag was proven on is compared with what the run would train.
        read(SPECS, REGISTRATIONS, RECORDS), can.tell_absent_from_denied, can.read_ledger,
        # Where the parameter differs from the ledger, it is written again.
        can.append_to_ledger, can.write_flag,
    ), megabytes=1024, machine=TRAIN),
    Step("build_request", (
        read(SPECS), can.read_ledger, write(PRODUCTION_REQUESTS),
    ), megabytes=1024, machine=TRAIN, makes_roles=True),
    Step("record_run", (
        read(SPECS, REGISTRATIONS), read_results(PRODUCTION_OUTPUTS), can.read_inputs,
        can.tell_absent_from_denied, can.read_ledger, can.append_to_ledger, can.stop_jobs,
        can.read_team_jobs, can.answer_tokens, can.tag_models,
        # After a team's own run: nothing else compares its parameter with the ledger.
        can.write_flag,
    ), seconds=300, megabytes=1024, machine=TRAIN),
    Step("review_production", (
        read(SPECS, REGISTRATIONS, RECORDS), can.tell_absent_from_denied,
        write(RECORDS, REPORTS), can.read_ledger, can.append_to_ledger, can.write_flag,
    ), seconds=120, megabytes=1024, machine=TRAIN),
    Step("project", (
        read(SPECS), can.tell_absent_from_denied, can.read_ledger, can.read_lock, can.keep_rows,
        can.read_stream,
    ), seconds=300, megabytes=1024, machine=STREAM),
    # Both list the workloads, and use a whole processor: ten thousand files are parsed.
    Step("weekly_digest", (
        read(SPECS, REGISTRATIONS, RECORDS), can.tell_absent_from_denied, can.read_ledger,
        can.read_rows,
    ), seconds=540, megabytes=1769, machine=SCHEDULE),
    Step("sweep", (
        can.stop_jobs, can.read_tags_of_jobs, can.read_executions, can.tell_absent_from_denied,
        can.read_ledger, can.append_to_ledger, can.tag_models, can.read_lock,
        can.give_lock_back,
        # A run whose event was lost is recorded as the event would have.
        read(SPECS, REGISTRATIONS, RECORDS), read_results(PRODUCTION_OUTPUTS), can.answer_tokens,
        can.read_rows, can.keep_rows,
    ), seconds=540, megabytes=1769, machine=SCHEDULE),
)  # fmt: skip


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
        jobs: JobRoles,
        settings: Settings,
        bundle: Path,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._jobs = jobs
        self._storage = storage
        self._code = lambda_.Code.from_asset(str(bundle))
        self._environment = {
            "DATA_BUCKET": storage.bucket.bucket_name,
            "DATA_KEY_ARN": storage.data_key.key_arn,
            "LEDGER_TABLE": storage.table.table_name,
            "STAGE": settings.stage,
            **jobs.environment(),
            "SETTINGS": settings.for_functions(),
        }
        permissions = Permissions(storage, settings)
        self.by_name: Mapping[str, lambda_.Function] = {
            step.name: self._function(step, permissions) for step in STEPS
        }
        self.live: Mapping[str, lambda_.Alias] = {
            name: lambda_.Alias(
                self, f"{_title(name)}Live", alias_name=LIVE, version=function.current_version
            )
            for name, function in self.by_name.items()
        }

    def of(self, machine: str) -> dict[str, lambda_.Function]:
        """The functions that one machine calls."""
        return {step.name: self.by_name[step.name] for step in STEPS if step.machine == machine}

    def _function(self, step: Step, permissions: Permissions) -> lambda_.Function:
        title = _title(step.name)
        name = f"{naming.stack_name(self._settings.stage)}-{step.name.replace('_', '-')}"
        group = self._storage.log_group(self, f"{title}Logs", name=f"{FUNCTION_LOGS}{name}")
        role = iam.Role(
            self,
            f"{title}Role",
            description=f"Compilegate {self._settings.stage}: {step.name}",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        )
        group.grant_write(role)
        for statement in (item for grant in step.may for item in grant(permissions)):
            role.add_to_policy(statement)
        for statement in self._jobs.make() if step.makes_roles else ():
            role.add_to_policy(statement)
        function = lambda_.Function(
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
        if self._settings.functions_vpc is not None:
            _put_into(self._settings.functions_vpc, function, role)
        return function


def _put_into(vpc: Vpc, function: lambda_.Function, role: iam.Role) -> None:
    """Give a function its network interfaces, by ids: the CDK would look the VPC up.

    On all resources, since the interfaces do not exist beforehand:
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
    """
    actions = (
        "AssignPrivateIpAddresses", "CreateNetworkInterface", "DeleteNetworkInterface",
        "DescribeNetworkInterfaces", "DescribeSubnets", "UnassignPrivateIpAddresses",
    )  # fmt: skip
    role.add_to_policy(allow([f"ec2:{action}" for action in actions], ["*"]))
    resource = cast("lambda_.CfnFunction", function.node.default_child)
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=[*vpc.subnet_ids], security_group_ids=[*vpc.security_group_ids]
    )
    resource.node.add_dependency(role)  # the interfaces are made as this role


def _title(name: str) -> str:
    return name.title().replace("_", "")
