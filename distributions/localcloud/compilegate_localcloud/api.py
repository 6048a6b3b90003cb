"""What the rest of the house may use of the embedded cloud; typed results, nothing printed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from compilegate_localcloud import logs as log_files
from compilegate_localcloud.assembly import assembly_of
from compilegate_localcloud.connection import RunState as RunState  # noqa: PLC0414  # of the results
from compilegate_localcloud.deploy import DeployedStack, deploy, stack_outputs
from compilegate_localcloud.lifecycle import LocalCloud, writing_to
from compilegate_localcloud.names import OTHER_CREDENTIALS as OTHER_CREDENTIALS  # noqa: PLC0414
from compilegate_localcloud.names import STACK, STAGE
from compilegate_localcloud.places import find_places

# Over that of cdk.json: what it says of an account's own roles, keys, buckets and networks is not
# in this cloud.
CONTEXT = {
    "stage": STAGE, "existing_bucket": False, "customer_key": False, "stack_key": True,
    "job_roles": "managed", "job_role_arn": None, "permissions_boundary": None,
    "functions_vpc": None,
}  # fmt: skip


@dataclass(frozen=True)
class UpResult:
    """A local cloud with the app deployed; seconds are wall clock."""

    state: RunState
    stacks: tuple[DeployedStack, ...]
    started_now: bool
    start_seconds: float
    synth_seconds: float
    deploy_seconds: float

    @property
    def outputs(self) -> dict[str, str]:
        """Outputs of all stacks."""
        return {key: value for stack in self.stacks for key, value in stack.outputs.items()}


@dataclass(frozen=True)
class StatusResult:
    """Whether the local cloud runs; ``outputs`` is None while the app is not deployed."""

    state: RunState | None
    outputs: dict[str, str] | None
    home: Path
    log_parts: tuple[str, ...]


def up(*, attached: bool = False, cloud: LocalCloud | None = None) -> UpResult:
    """Start the local cloud unless it runs, and deploy the app as it is now.

    The emulator starts while the app synthesises. Raises LocalCloudError.
    """
    used, cloud = cloud, cloud or LocalCloud()
    try:
        result = _up(cloud, attached=attached)
    except Exception:
        cloud.leave(failed=True)  # an empty cloud is of no use
        raise
    if used is None:
        cloud.leave()
    return result


def _up(cloud: LocalCloud, *, attached: bool) -> UpResult:
    with ThreadPoolExecutor(max_workers=1) as pool:
        assembly = pool.submit(_timed_synth, cloud)
        began = time.monotonic()
        state, started_now = cloud.join_or_start(attached=attached)
        start_seconds = time.monotonic() - began
        folder, synth_seconds = assembly.result()
    began = time.monotonic()
    with cloud.deploying():
        stacks = deploy(state, folder)
    return UpResult(
        state=state,
        stacks=stacks,
        started_now=started_now,
        start_seconds=start_seconds,
        synth_seconds=synth_seconds,
        deploy_seconds=time.monotonic() - began,
    )


def down(cloud: LocalCloud | None = None) -> bool:
    """End the local cloud and everything it started; False if none ran."""
    return (cloud or LocalCloud()).stop()


def status(cloud: LocalCloud | None = None) -> StatusResult:
    """What runs now."""
    cloud = cloud or LocalCloud()
    state = cloud.state()
    return StatusResult(
        state=state,
        outputs=stack_outputs(state, STACK) if state else None,
        home=cloud.places.home,
        log_parts=log_files.parts(cloud.places.logs),
    )


def environment(cloud: LocalCloud | None = None) -> dict[str, str]:
    """Variables that aim other AWS tools at the cloud that runs; raises NotReadyError."""
    return (cloud or LocalCloud()).running_state().environment()


def logs(
    part: str, *, last: int | None = None, cloud: LocalCloud | None = None
) -> log_files.PartLog:
    """One part's log; see ``status().log_parts`` for the parts. Raises NoLogError."""
    cloud = cloud or LocalCloud()
    log = log_files.read_log(cloud.places.logs, part, last=last)
    kind, _, name = log.part.partition("/")
    state = cloud.state() if kind == "execution" else None
    if state is None:
        return log
    lines = log_files.running_history(state.client("stepfunctions"), name)
    return log if lines is None else replace(log, lines=lines[-last:] if last else lines)


@contextlib.contextmanager
def started(*, keep: bool, cloud: LocalCloud | None = None) -> Iterator[UpResult]:
    """The app on the local cloud that runs, else on one that is started for the block.

    One that is started here ends when the last of its users does, unless ``keep`` and the block
    raises nothing.
    """
    cloud = cloud or LocalCloud()
    with cloud:
        try:
            yield up(attached=not keep, cloud=cloud)
        except BaseException:
            cloud.leave(failed=True)
            raise


def training_python() -> Path:
    """The Python that training jobs run. Raises NotReadyError where there is none."""
    return find_places().training_python


def _timed_synth(cloud: LocalCloud) -> tuple[Path, float]:
    began = time.monotonic()
    places = cloud.places
    with writing_to(places.assemblies):
        folder = assembly_of(places.repository, places.assemblies, context=CONTEXT)
    return folder, time.monotonic() - began
