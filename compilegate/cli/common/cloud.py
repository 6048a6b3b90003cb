"""Who runs the command, for what is recorded under a person's name."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compilegate.adapters.dynamodb import Lock
from compilegate.adapters.executions import ExecutionState
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.naming import stack_name
from compilegate.ports import Schedules, Services, Topic


def os_user() -> str:
    """The user of this machine; their number where they have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def aws_caller(sts: Any) -> str:
    """The ARN that AWS knows the caller by (sts:GetCallerIdentity, which needs no permission)."""
    return str(sts.get_caller_identity()["Arn"])


class Executions(Protocol):
    """Executions of one state machine."""

    def start(self, name: str, payload: Mapping[str, Any]) -> str:
        """Start one; returns its ARN."""
        ...

    def describe(self, arn: str) -> ExecutionState:
        """Its state; raises NotFoundError."""
        ...

    def stop(self, arn: str, cause: str) -> None:
        """Stop it."""
        ...

    def running(self) -> Sequence[ExecutionState]:
        """Every execution that has not ended."""
        ...

    def running_arns(self) -> Sequence[str]:
        """ARNs of those that have not ended."""
        ...

    def input_of(self, arn: str) -> Mapping[str, Any]:
        """What one was started with."""
        ...

    def owns(self, arn: str) -> bool:
        """Whether an execution is this machine's."""
        ...


class JobWatch(Protocol):
    """A trial's jobs and what they print."""

    def names(self, prefix: str) -> Sequence[str]:
        """Every job whose name begins with ``prefix``, oldest first."""
        ...

    def lines(self, job: str, token: str | None) -> tuple[Sequence[str], str | None]:
        """Lines since ``token``, and the next token."""
        ...


class Overview(Protocol):
    """The whole ledger at a glance."""

    def workloads(self) -> Sequence[str]:
        """Every workload with an entry."""
        ...

    def locks(self) -> Sequence[Lock]:
        """Every lease that is held."""
        ...


@dataclass(frozen=True)
class Production:
    """What starts production runs: TRAIN, by hand or on a schedule."""

    executions: Executions
    schedules: Schedules


@dataclass(frozen=True)
class Cloud:
    """One stage of the app; ``poll_seconds`` is how often a watcher may ask.

    ``executions`` are EVALUATE's; ``production`` is None on a stack from before there was one.
    ``who`` names the person at the keyboard. ``topic`` is None where the stack names none.
    """

    services: Services
    executions: Executions
    watch: JobWatch
    overview: Overview
    poll_seconds: float
    production: Production | None = None
    who: Callable[[], str] = os_user
    topic: Topic | None = None

    def with_production(self) -> Production:
        """What starts production runs; raises EnvironmentNotReadyError where nothing does."""
        if self.production is None:
            name = stack_name(self.services.settings.stage)
            how = "`compilegate local up`" if self.is_local else "`make deploy`"
            raise EnvironmentNotReadyError(
                f"The stack {name} cannot start production runs. Fix: deploy this release "
                f"with {how}."
            )
        return self.production

    @property
    def is_local(self) -> bool:
        """Whether training is this machine's own."""
        return self.services.settings.simulated is not None


@dataclass(frozen=True)
class StartedCloud:
    """An embedded cloud with the app deployed; seconds are wall clock."""

    cloud: Cloud
    started_now: bool
    start_seconds: float
    synth_seconds: float
    deploy_seconds: float
