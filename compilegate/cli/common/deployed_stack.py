"""Finds a stage's CloudFormation stack, and says what to do where it cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from compilegate.cli.common import project
from compilegate.domain.errors import EnvironmentNotReadyError, NoStackError, NotDeployedError
from compilegate.domain.naming import stack_name

# Statuses in which a stack has no working resources, and what to do about each:
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
_WAIT = "wait until CloudFormation has finished, then run the command again"
_FAILED = (
    "read the stack's events in the CloudFormation console, remove the cause, then run "
    "`make deploy`, which replaces it"
)
_UNUSABLE = {
    "REVIEW_IN_PROGRESS": "no deployment has been carried out yet: run `make deploy`",
    "CREATE_IN_PROGRESS": _WAIT,
    "CREATE_FAILED": _FAILED,
    "ROLLBACK_IN_PROGRESS": _WAIT,
    "ROLLBACK_FAILED": _FAILED,
    "ROLLBACK_COMPLETE": _FAILED,
    "DELETE_IN_PROGRESS": "it is being removed: wait, then run `make deploy`",
    "DELETE_FAILED": "its removal did not finish: read its events, then run `make destroy` again",
}


def stack_outputs(cloudformation: Any, stage: str) -> Mapping[str, str]:
    """The stage's outputs.

    Raises NoStackError where there is no stack, NotDeployedError for one without working
    resources.
    """
    name, region = stack_name(stage), str(cloudformation.meta.region_name)
    stack = _describe(cloudformation, name)
    if stack is None:
        raise NoStackError(f"There is no stack {name} in {region}. Fix: {_how(stage, region)}.")
    status = str(stack["StackStatus"])
    if status in _UNUSABLE:
        raise NotDeployedError(
            f"The stack {name} in {region} is not in use ({status}). Fix: {_UNUSABLE[status]}."
        )
    return {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}


def check_outputs(outputs: Mapping[str, str], stage: str, needed: tuple[str, ...]) -> None:
    """Raises EnvironmentNotReadyError for a stack that an older release has deployed."""
    missing = [name for name in needed if name not in outputs]
    if missing:
        raise EnvironmentNotReadyError(
            f"The stack {stack_name(stage)} was deployed by another release: it has no output "
            f"{missing[0]}. Fix: deploy this release with `make deploy`, or use the release that "
            "is deployed."
        )


def _describe(cloudformation: Any, name: str) -> Mapping[str, Any] | None:
    try:
        stacks = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        # CloudFormation has one code, ValidationError, for this and for every malformed request.
        if "does not exist" not in str(error):
            raise
        return None
    return stacks[0] if stacks else None


def _how(stage: str, region: str) -> str:
    """The command that deploys the stage, with a hint where the shell differs from cdk.json."""
    configured = project.deployment()
    if (configured.stage, configured.region) != (stage, region):
        return (
            f"cdk.json deploys {stack_name(configured.stage)} to {configured.region}; use that "
            "with AWS_REGION and --stage, or deploy this one: change `region` and `stage` there, "
            "then run `make deploy`. Without an account use --local"
        )
    return (
        "deploy it with `make deploy` (the first time in an account and region after "
        "`make bootstrap`). Without an account use --local"
    )
