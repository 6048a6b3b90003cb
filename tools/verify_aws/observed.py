"""What a verification saw of AWS, before anything is compared with what is assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from compilegate.adapters.state_machines import ExecutionState


class JobKind(StrEnum):
    """The jobs of a verification, in the order in which they run."""

    SPEED = "speed"
    QUALITY = "quality"
    FAILED = "failed"
    STOPPED = "stopped"
    LIMITED = "limited"


class RefusedKind(StrEnum):
    """Requests that AWS must refuse: none of them starts a job."""

    INVALID = "invalid"
    NAME_IN_USE = "name-in-use"
    UNKNOWN_FIELD = "unknown-field"
    OVER_QUOTA = "over-quota"


@dataclass(frozen=True)
class Job:
    """One training job that has ended.

    ``described`` is DescribeTrainingJob's answer (times are datetimes). ``files`` are keys below
    its output prefix, ``checkpoints`` those below its checkpoint prefix, ``summaries`` the names
    of the evidence in its output data. ``report`` is what the probe printed, empty for the
    other jobs.
    ``searched`` are Search's records of the jobs created in the same second, None where it was
    refused, and ``gpu_percent`` the points of CloudWatch's ``GPUUtilization``.
    ``copied_while_training`` is None where that was not looked at.
    """

    request: Mapping[str, Any]
    described: Mapping[str, Any]
    execution: ExecutionState
    log: Sequence[str] = ()
    files: Sequence[str] = ()
    checkpoints: Sequence[str] = ()
    summaries: Sequence[str] = ()
    report: Mapping[str, Any] = field(default_factory=dict)
    searched: Sequence[Mapping[str, Any]] | None = None
    gpu_percent: Sequence[float] = ()
    copied_while_training: bool | None = None

    @property
    def name(self) -> str:
        """The job's name, as AWS describes it."""
        return str(self.described["TrainingJobName"])

    @property
    def status(self) -> str:
        """``TrainingJobStatus``."""
        return str(self.described["TrainingJobStatus"])

    @property
    def failure_reason(self) -> str:
        """``FailureReason``, empty where there is none."""
        return str(self.described.get("FailureReason", ""))


@dataclass(frozen=True)
class Observations:
    """Everything that a verification saw.

    ``messages`` are the bodies that reached the temporary queue: events, and the schedule's
    input. ``task_output`` is what a state that waited for a token got, None before it got any.
    ``definitions`` maps a deployed state machine to ValidateStateMachineDefinition's answer.
    """

    jobs: Mapping[JobKind, Job] = field(default_factory=dict)
    refused: Mapping[RefusedKind, ExecutionState] = field(default_factory=dict)
    messages: Sequence[Mapping[str, Any]] = ()
    task_output: Any = None
    definitions: Mapping[str, str] = field(default_factory=dict)
    quota: int | None = None


@dataclass(frozen=True)
class Seen:
    """What was seen: ``value`` is compared with the assumption, ``detail`` is for people."""

    value: str
    detail: str = ""
