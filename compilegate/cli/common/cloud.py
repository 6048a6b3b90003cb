"""One stage of the app as commands reach it, and who runs them."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.naming import stack_name
from compilegate.ports import Schedules, Services, Topic

if TYPE_CHECKING:
    from compilegate.adapters.dynamodb import DynamoDbOverview
    from compilegate.adapters.executions import StepFunctionsExecutions
    from compilegate.adapters.training_logs import CloudJobWatch


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

    ``executions`` are EVALUATE's; ``production`` is None on a stack from before there was one.
    ``who`` names the person at the keyboard. ``topic`` is None where the stack names none.
    """

    services: Services
    executions: StepFunctionsExecutions
    watch: CloudJobWatch
    overview: DynamoDbOverview
    poll_seconds: float
    production: Production | None = None
    who: Callable[[], str] = os_user
    topic: Topic | None = None

    def with_production(self) -> Production:
        """What starts production runs; raises EnvironmentNotReadyError where nothing does."""
        if self.production is None:
            name = stack_name(self.services.settings.stage)
            deploy = "compilegate local up" if self.is_local else "make deploy"
            raise EnvironmentNotReadyError(
                f"The stack {name} cannot start production runs. Fix: deploy this release with "
                f"`{deploy}`."
            )
        return self.production

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
    """An embedded cloud with the app deployed; seconds are wall clock."""

    cloud: Cloud
    started_now: bool
    start_seconds: float
    synth_seconds: float
    deploy_seconds: float
