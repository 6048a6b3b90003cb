"""Deploys a synthesised assembly with CloudFormation, as the CDK command would."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from compilegate_localcloud.assembly import StackArtifact, read_stacks
from compilegate_localcloud.connection import RunState
from compilegate_localcloud.errors import DeployError
from compilegate_localcloud.names import ACCOUNT

# The qualifier of CDK's default synthesizer, and the version it checks against.
_BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
_BOOTSTRAP_VERSION = "30"
_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_POLL_SECONDS = 0.05
_DEPLOY_SECONDS = 300.0


@dataclass(frozen=True)
class DeployedStack:
    """A stack that is up; ``outputs`` by output key."""

    name: str
    status: str
    outputs: dict[str, str]
    seconds: float


def deploy(state: RunState, assembly: Path) -> tuple[DeployedStack, ...]:
    """Create or update every stack of the assembly in the local cloud.

    Raises DeployError.
    """
    state.client("ssm").put_parameter(
        Name=_BOOTSTRAP_PARAMETER, Value=_BOOTSTRAP_VERSION, Type="String", Overwrite=True
    )
    return tuple(_deploy_stack(state, stack) for stack in read_stacks(assembly))


def stack_outputs(state: RunState, name: str) -> dict[str, str] | None:
    """Outputs of a stack that is up; None if there is no such stack."""
    stack = _describe(state.client("cloudformation"), name)
    return None if stack is None else _outputs(stack)


def _deploy_stack(state: RunState, stack: StackArtifact) -> DeployedStack:
    started = time.monotonic()
    template_url = _upload(state, stack)
    cloudformation = state.client("cloudformation")
    request = {
        "StackName": stack.name,
        "TemplateURL": template_url,
        "Capabilities": _CAPABILITIES,
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in stack.parameters.items()
        ],
    }
    existing = _describe(cloudformation, stack.name)
    if existing is not None and existing["StackStatus"] == "ROLLBACK_COMPLETE":
        cloudformation.delete_stack(StackName=stack.name)  # cannot be updated, as on AWS
        _wait(cloudformation, stack.name)
        existing = None
    if existing is None:
        cloudformation.create_stack(**request)
    else:
        _update(cloudformation, request)
    final = _wait(cloudformation, stack.name)
    if final is None or final["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        raise DeployError(_explain(cloudformation, stack.name, final))
    seconds = time.monotonic() - started
    return DeployedStack(stack.name, final["StackStatus"], _outputs(final), seconds)


def _upload(state: RunState, stack: StackArtifact) -> str:
    """Put the assets and the template where the template expects them; returns its URL."""
    s3 = state.client("s3")
    existing: set[str] = set()

    def ensure(bucket: str) -> None:
        if bucket not in existing:
            with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou):
                s3.create_bucket(Bucket=bucket)
            existing.add(bucket)

    for asset in stack.assets:
        bucket = _resolved(asset.bucket, state)
        ensure(bucket)
        s3.put_object(Bucket=bucket, Key=_resolved(asset.key, state), Body=asset.body)
    bucket = f"cdk-templates-{ACCOUNT}-{state.region}"
    ensure(bucket)
    s3.put_object(Bucket=bucket, Key=f"{stack.name}.json", Body=stack.template)
    return f"{state.endpoint}/{bucket}/{stack.name}.json"


def _resolved(text: str, state: RunState) -> str:
    return (
        text.replace("${AWS::AccountId}", ACCOUNT)
        .replace("${AWS::Region}", state.region)
        .replace("${AWS::Partition}", "aws")
    )


def _update(cloudformation: Any, request: dict[str, Any]) -> None:
    try:
        cloudformation.update_stack(**request)
    except ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise


def _describe(cloudformation: Any, name: str) -> dict[str, Any] | None:
    try:
        stacks = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError:
        return None
    stack: dict[str, Any] | None = stacks[0] if stacks else None
    return None if stack is None or stack["StackStatus"] == "DELETE_COMPLETE" else stack


def _wait(cloudformation: Any, name: str) -> dict[str, Any] | None:
    deadline = time.monotonic() + _DEPLOY_SECONDS
    while time.monotonic() < deadline:
        stack = _describe(cloudformation, name)
        if stack is None or not stack["StackStatus"].endswith("IN_PROGRESS"):
            return stack
        time.sleep(_POLL_SECONDS)
    raise DeployError(f"Stack {name} is still in progress after {_DEPLOY_SECONDS:.0f} s.")


def _outputs(stack: dict[str, Any]) -> dict[str, str]:
    return {item["OutputKey"]: item["OutputValue"] for item in stack.get("Outputs", [])}


def _explain(cloudformation: Any, name: str, stack: dict[str, Any] | None) -> str:
    status = stack["StackStatus"] if stack else "gone"
    failures = "\n".join(_failures(cloudformation, name)) or "  no resource reported a failure"
    return f"Stack {name} did not come up ({status}):\n{failures}"


def _failures(cloudformation: Any, name: str) -> Iterator[str]:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    for event in reversed(events):
        reason = event.get("ResourceStatusReason", "no reason given")
        if event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in reason:
            yield f"  {event['LogicalResourceId']} ({event['ResourceType']}): {reason}"
