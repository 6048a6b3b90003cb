"""One stage of the app as commands reach it, who runs them, and the workloads it knows."""

from __future__ import annotations

import contextlib
import getpass
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.ports import Schedules, Services, Topic
from compilegate.usecases.registered import load_registration

if TYPE_CHECKING:
    from compilegate.adapters.sagemaker import JobLogs
    from compilegate.adapters.state_machines import StepFunctionsExecutions
    from compilegate.adapters.stores import DynamoDbTable

MOST_NAMES = 3


def os_user() -> str:
    """The user of this machine; their number where they have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def aws_caller(sts: Any) -> str:
    """The ARN that AWS knows the caller by (sts:GetCallerIdentity, which needs no permission)."""
    return str(sts.get_caller_identity()["Arn"])


@dataclass(frozen=True)
class Production:
    """What starts production runs: TRAIN, by hand or on a schedule."""

    executions: StepFunctionsExecutions
    schedules: Schedules


@dataclass(frozen=True)
class Cloud:
    """One stage of the app; ``poll_seconds`` is how often a watcher may ask.

    ``executions`` are EVALUATE's. ``who`` names the person at the keyboard. ``topic`` is None where
    the stack names none.
    """

    services: Services
    executions: StepFunctionsExecutions
    logs: JobLogs
    overview: DynamoDbTable
    poll_seconds: float
    production: Production
    who: Callable[[], str] = os_user
    topic: Topic | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is the embedded cloud, which trains on this machine."""
        return self.services.settings.simulated is not None

    @property
    def stage(self) -> str:
        """The deployed stage."""
        return self.services.settings.stage

    def command(self, words: str) -> str:
        """A command to copy, ``compilegate WORDS``, with the option that selects this cloud."""
        return f"compilegate {words}{' --local' if self.is_local else ''}"


@dataclass(frozen=True)
class StartedCloud:
    """An embedded cloud with the app deployed; ``deploy_seconds`` are wall clock.

    ``resumed`` says that it had been killed and goes on where it was.
    """

    cloud: Cloud
    started_now: bool
    deploy_seconds: float
    resumed: bool = False


def check_workload_exists(workload: str, cloud: Cloud) -> None:
    """Raises InvalidInputError where neither ledger, flag nor registration has the name.

    In the order of the permissions that they take: those of a reader of flags come first.
    """
    services = cloud.services
    flag = naming.flag_parameter(services.settings.stage, workload)
    if not (
        services.ledger.history(workload).records
        or services.flags.read(flag) is not None
        or services.store.has(naming.registration_key(workload))
    ):
        raise _unknown(workload, cloud, "is not a workload of this stage", "WORKLOAD")


def check_registered(workload: str, cloud: Cloud, *, field: str) -> None:
    """Raises InvalidInputError for a workload that never was registered."""
    try:
        load_registration(cloud.services.store, workload)
    except NotFoundError as error:
        raise _unknown(workload, cloud, "is not registered", field) from error


def _unknown(workload: str, cloud: Cloud, problem: str, field: str) -> InvalidInputError:
    """The error; its fix names the workloads that are spelt alike."""
    names: Sequence[str] = ()
    with contextlib.suppress(Exception):  # without the permission to list them: no suggestions
        names = cloud.overview.workloads()
    near = get_close_matches(workload, names, n=MOST_NAMES)
    if workload in names:
        fix = f"put it into production with `{cloud.command('register FILE')}`"
    else:
        fix = f"did you mean {' or '.join(near)}? " if near else ""
        fix += f"`{cloud.command('status')}` lists the workloads of this stage"
    return InvalidInputError(problem, field=field, value=workload, fix=fix)
