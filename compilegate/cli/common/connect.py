"""Connects the commands to a deployed stage by the outputs of its stack."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from compilegate.adapters import wiring
from compilegate.adapters.sagemaker import JobLogs
from compilegate.adapters.state_machines import EventBridgeSchedules, StepFunctionsExecutions
from compilegate.adapters.stores import SnsTopic, client
from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud, Production, StartedCloud, aws_caller, os_user
from compilegate.cli.common.error_handling import explain
from compilegate.domain.claims import LOCAL_STAGE
from compilegate.domain.errors import EnvironmentNotReadyError, NoStackError, NotDeployedError
from compilegate.domain.naming import stack_name
from compilegate.ports import Settings

if TYPE_CHECKING:
    from compilegate_localcloud.api import RunState

LOCAL_POLL_SECONDS = 2.0
AWS_POLL_SECONDS = 5.0
NEEDED_OUTPUTS = (
    "DataBucket", "LedgerTable", "EvaluateStateMachine", "JobRoles", "TrainStateMachine",
    "ScheduleGroup", "SchedulerRole",
)  # fmt: skip
# Statuses in which a stack has no working resources, and what to do about each:
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
_WAIT = "wait until CloudFormation has finished, then rerun the command"
_FAILED = (
    "read the stack's events in the CloudFormation console, remove the cause, then run "
    "`make deploy`, which replaces it"
)
_UNUSABLE = {
    "REVIEW_IN_PROGRESS": "nothing has been deployed yet: run `make deploy`",
    "CREATE_IN_PROGRESS": _WAIT,
    "CREATE_FAILED": _FAILED,
    "ROLLBACK_IN_PROGRESS": _WAIT,
    "ROLLBACK_FAILED": _FAILED,
    "ROLLBACK_COMPLETE": _FAILED,
    "DELETE_IN_PROGRESS": "it is being deleted: wait, then run `make deploy`",
    "DELETE_FAILED": "its deletion failed: read its events, then rerun `make destroy`",
}


def aws(stage: str) -> Cloud:
    """The stage's stack in the account of the environment."""
    # boto3 reads this variable alone; a profile's region is not where cdk.json deployed to.
    os.environ["AWS_DEFAULT_REGION"] = project.checked_region()
    outputs = stack_outputs(client("cloudformation"), stage)
    return cloud_of(outputs, stage, AWS_POLL_SECONDS)


def local() -> Cloud:
    """The embedded cloud that runs."""
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - compilegate[local]
    from compilegate_localcloud.errors import LocalCloudError  # noqa: PLC0415

    try:
        status = local_cloud.status()
    except LocalCloudError as error:
        said = explain(error)
        raise EnvironmentNotReadyError(said.problem, fix=said.fix) from error
    if not status.state:
        raise EnvironmentNotReadyError(
            "The local cloud does not run", fix="start it with `compilegate local up`."
        )
    if status.outputs is None:
        raise EnvironmentNotReadyError(
            "The local cloud runs without the app", fix="deploy it with `compilegate local up`."
        )
    _aim_at(status.state)
    return cloud_of(status.outputs, LOCAL_STAGE, LOCAL_POLL_SECONDS)


@contextmanager
def started_local(*, keep: bool) -> Iterator[StartedCloud]:
    """The embedded cloud with the app as it is now, started if it does not run."""
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - compilegate[local]

    with local_cloud.started(keep=keep) as up:
        _aim_at(up.state)
        yield StartedCloud(
            cloud=cloud_of(up.outputs, LOCAL_STAGE, LOCAL_POLL_SECONDS),
            started_now=up.started_now,
            deploy_seconds=up.deploy_seconds,
            resumed=up.state.resumed,
        )


def _aim_at(state: RunState) -> None:
    """Point this process's AWS clients at the embedded cloud and nothing else."""
    from compilegate_localcloud.names import OTHER_CREDENTIALS  # noqa: PLC0415

    os.environ.update(state.environment())
    for name in OTHER_CREDENTIALS:
        os.environ.pop(name, None)
    boto3.setup_default_session()
    state.watch_over(boto3.DEFAULT_SESSION)
    client.cache_clear()


def cloud_of(outputs: Mapping[str, str], stage: str, poll_seconds: float) -> Cloud:
    """A cloud from its stack's outputs; EnvironmentNotReadyError when one is missing."""
    missing = [name for name in NEEDED_OUTPUTS if name not in outputs]
    if missing:
        raise EnvironmentNotReadyError(
            f"The stack {stack_name(stage)} was deployed by another release: it has no output "
            f"{missing[0]}",
            fix="deploy this release with `make deploy`, or use the release that is deployed.",
        )
    settings = Settings(
        stage=stage,
        region=client("s3").meta.region_name,
        job_roles=outputs["JobRoles"],
        simulated=wiring.simulated_note(),
    )
    table, train = outputs["LedgerTable"], outputs["TrainStateMachine"]
    return Cloud(
        services=wiring.build(bucket=outputs["DataBucket"], table=table, settings=settings),
        executions=StepFunctionsExecutions(
            client("stepfunctions"), outputs["EvaluateStateMachine"]
        ),
        logs=JobLogs(client("logs")),
        poll_seconds=poll_seconds,
        production=Production(
            executions=StepFunctionsExecutions(client("stepfunctions"), train),
            schedules=EventBridgeSchedules(
                client("scheduler"),
                group=outputs["ScheduleGroup"],
                machine=train,
                role=outputs["SchedulerRole"],
            ),
        ),
        topic=SnsTopic(client("sns"), outputs["DecisionTopic"])
        if "DecisionTopic" in outputs
        else None,
        who=os_user if settings.simulated else lambda: aws_caller(client("sts")),
    )


def stack_outputs(cloudformation: Any, stage: str) -> Mapping[str, str]:
    """The stage's outputs.

    Raises NoStackError where there is no stack, NotDeployedError for one without working
    resources.
    """
    name, region = stack_name(stage), str(cloudformation.meta.region_name)
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        # CloudFormation has one code, ValidationError, for this and for every malformed request.
        if "does not exist" not in str(error):
            raise
        deployed = project.deployment()
        how = (
            "deploy it with `make deploy` (in a new account or region after `make bootstrap`). "
            "Without an account use --local."
        )
        if (deployed.stage, deployed.region) != (stage, region):
            how = (
                f"cdk.json deploys {stack_name(deployed.stage)} to {deployed.region}; use that "
                "with AWS_REGION and --stage, or change `region` and `stage` in cdk.json and run "
                "`make deploy`. Without an account use --local."
            )
        raise NoStackError(f"There is no stack {name} in {region}", fix=how) from None
    status = str(stack["StackStatus"])
    if status in _UNUSABLE:
        raise NotDeployedError(
            f"The stack {name} in {region} is not usable ({status})", fix=f"{_UNUSABLE[status]}."
        )
    return {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}
