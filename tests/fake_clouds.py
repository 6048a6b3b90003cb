"""Clouds in memory, as commands are given them: executions by a script, what jobs print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from compilegate.adapters.state_machines import ExecutionState
from compilegate.cli.common.cloud import Cloud, Production, StartedCloud
from compilegate.domain.errors import EnvironmentNotReadyError, NotFoundError
from tests.fakes import MemorySchedules, services

MACHINE = "arn:aws:states:us-east-1:111122223333:execution:evaluate:"
TRAIN = "arn:aws:states:us-east-1:111122223333:execution:train:"


@dataclass
class ScriptedExecutions:
    """Executions that end as ``ends`` says by workload, after ``looks`` descriptions.

    ``outputs`` are what they end with, by workload.
    """

    ends: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    looks: int = 1
    started: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    on_start: Any = None
    on_look: Any = None
    prefix: str = MACHINE

    def start(self, name: str, payload: Mapping[str, Any]) -> str:
        arn = self.prefix + name
        self.started[arn] = payload
        if self.on_start:
            self.on_start(payload)
        return arn

    def describe(self, arn: str) -> ExecutionState:
        if self.on_look:
            self.on_look(arn)
        if arn not in self.started:
            raise NotFoundError(f"there is no execution {arn}")
        if arn in self.stopped:
            return ExecutionState(arn, "ABORTED", 1000.0, 1010.0, "Stopped", self.stopped[arn])
        self.looks -= 1
        if self.looks >= 0:
            return ExecutionState(arn, "RUNNING", 1000.0)
        workload = str(self.started[arn]["workload"])
        status, output = self.ends.get(workload, "SUCCEEDED"), self.outputs.get(workload, {})
        return ExecutionState(arn, status, 1000.0, 1060.0, output=output)

    def stop(self, arn: str, cause: str) -> None:
        self.stopped[arn] = cause

    def running(self) -> Sequence[ExecutionState]:
        return [
            ExecutionState(arn, "RUNNING", 1000.0)
            for arn in self.started
            if arn not in self.stopped
        ]

    def running_arns(self) -> Sequence[str]:
        return [state.arn for state in self.running()]

    def input_of(self, arn: str) -> Mapping[str, Any]:
        return self.started[arn]

    def owns(self, arn: str) -> bool:
        return arn.startswith(self.prefix)


@dataclass
class ScriptedLogs:
    """What each job prints."""

    printed: dict[str, list[str]] = field(default_factory=dict)

    def lines(self, job: str, token: str | None) -> tuple[Sequence[str], str | None]:
        read = int(token or 0)
        lines = self.printed.get(job, [])
        return lines[read:], str(len(lines))


def cloud(stage: str = "dev", simulated: str | None = None, **executions: Any) -> Cloud:
    """A cloud in memory; keywords go to its ScriptedExecutions."""
    memory = services(stage, simulated)
    return Cloud(
        services=memory,
        executions=ScriptedExecutions(**executions),
        logs=ScriptedLogs(),
        poll_seconds=0.0,
        production=Production(ScriptedExecutions(**executions, prefix=TRAIN), MemorySchedules()),
    )


@dataclass
class FakeProviders:
    """Providers to clouds in memory; None is a cloud that is not there."""

    aws_cloud: Cloud | None = None
    local_cloud: Cloud | None = None
    ended: bool = False
    resumed: bool = False

    def aws(self, stage: str) -> Cloud:
        if self.aws_cloud is None:
            raise EnvironmentNotReadyError(
                f"There is no stack compilegate-{stage}", fix="deploy it"
            )
        return self.aws_cloud

    def local(self) -> Cloud:
        if self.local_cloud is None:
            raise EnvironmentNotReadyError("The local cloud does not run", fix="start it")
        return self.local_cloud

    @contextmanager
    def started_local(self, *, keep: bool) -> Any:
        try:
            yield StartedCloud(self.local(), True, 3.0, self.resumed)
        finally:
            self.ended = not keep
