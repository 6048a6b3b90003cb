"""How the jobs of a trial ended, as the state machine and SageMaker report it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from compilegate.domain import naming
from compilegate.domain.argument_text import decoded_document
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.failures import COMPLETED, STOPPED, explain_job
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.rounds import job_seconds, speed_job_seconds
from compilegate.domain.planning.speed_jobs import controls_of

# What the state machine reports where nothing explained how a run ended.
UNKNOWN = "Unknown"
ARM = re.compile(r"arm_\d+")
# A job that is asked to stop may take as long.
STOP_SECONDS = 120


@dataclass(frozen=True)
class OutputRuns:
    """What a completed job left: segments by arm or a full run, or why they do not count."""

    segments: tuple[tuple[str, SpeedRun], ...] = ()
    full_run: FullRun | None = None
    unreadable: InvalidEvidenceError | None = None


@dataclass(frozen=True)
class EndedJob:
    """One job of a trial that has ended; nothing of it is kept yet.

    ``infrastructure``: the cloud could not run it. ``described`` is SageMaker's description, empty
    where it never saw the job. ``asked_arms`` are the arms that a speed job on nodes of its own was
    asked to measure. ``output`` is read only of a job that completed and is not recorded yet.
    """

    run: naming.RunId
    job: str
    status: str
    reason: str | None = None
    infrastructure: bool = False
    timed_out: bool = False
    stopped_by_trial: bool = False
    described: Mapping[str, Any] = field(default_factory=dict)
    asked_arms: tuple[str, ...] = ()
    output: OutputRuns = OutputRuns()

    @classmethod
    def from_event(cls, outcome: Mapping[str, Any]) -> Self:
        """Read an outcome as the state machine passes it along."""
        return cls(
            run=naming.parse_run(str(outcome["run"])),
            job=str(outcome["job"]),
            status=str(outcome["status"]),
            reason=outcome.get("reason"),
            infrastructure=bool(outcome.get("infrastructure")),
            timed_out=bool(outcome.get("timed_out")),
        )

    @classmethod
    def failed(cls, run: naming.RunId, job: str, cause: str) -> Self:
        """One that did not complete; ``cause`` is its description as JSON, or why it has none."""
        end = explain_job(cause)
        return cls(run, job, end.status, end.reason, end.infrastructure, end.timed_out)

    def to_outcome(self) -> dict[str, Any]:
        """For the state machine."""
        failure = {"infrastructure": self.infrastructure, "timed_out": self.timed_out}
        return {
            "run": self.run.text,
            "job": self.job,
            "status": self.status,
            "reason": self.reason,
            **({} if self.status == COMPLETED else failure),
        }

    def with_description(self, described: Mapping[str, Any]) -> Self:
        """The job as SageMaker describes it, which says how it ended where nothing else did."""
        ended, name = self, self.job
        if self.status == UNKNOWN:
            if not described:
                ended = self.failed(self.run, name, "the job could not be started")
            elif described["TrainingJobStatus"] == COMPLETED:
                ended = replace(self, status=COMPLETED, reason=None)
            else:
                ended = self.failed(self.run, name, json.dumps(dict(described), default=str))
        return replace(ended, described=described)

    @property
    def was_stopped(self) -> bool:
        """Whether somebody stopped it; a job that reached a limit failed."""
        return self.status == STOPPED and not self.infrastructure and not self.timed_out

    @property
    def stopped_by_others(self) -> bool:
        """Whether somebody stopped it, and not the trial itself."""
        return self.was_stopped and not self.stopped_by_trial

    @property
    def is_result(self) -> bool:
        """Whether its end is a result of its arm."""
        return not self.was_stopped and not self.infrastructure

    @property
    def described_arms(self) -> tuple[str, ...]:
        """Names of the arms that SageMaker says it was asked to measure."""
        return asked_arms(self.described.get("HyperParameters") or {})

    def controls(self, arms: Sequence[ArmPlan]) -> tuple[str, ...]:
        """Names of the controls that it measures, none for a job that decides."""
        return controls_of(self.run, arms)

    def cut_off(self, max_runtime_hours: float) -> bool:
        """Whether it reached a limit that the budget set, below the workload's own."""
        if not self.timed_out or not self.described:
            return False
        own = self._own_limit(max_runtime_hours)
        limit = (self.described.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds", own)
        return bool(limit < own)

    def _own_limit(self, max_runtime_hours: float) -> int:
        """Its limit without the budget's; a speed job's follows its segments."""
        parameters = self.described.get("HyperParameters") or {}
        if not self.run.is_speed or "blocks" not in parameters:
            return job_seconds(max_runtime_hours)
        arms = sum(key.startswith("arm_") for key in parameters)
        return speed_job_seconds(max_runtime_hours, arms=arms, blocks=int(parameters["blocks"]))


def asked_arms(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the arms that a speed job's hyperparameters ask for, as speed_request writes it."""
    described = [text for name, text in sorted(parameters.items()) if ARM.fullmatch(name)]
    return tuple(str(decoded_document(json.loads(text))["name"]) for text in described)


def billable_seconds(described: Mapping[str, Any], now: int) -> float:
    """What SageMaker bills, or will bill at most for a job that is being stopped."""
    billable, started = described.get("BillableTimeInSeconds"), described.get("TrainingStartTime")
    if billable is not None or not isinstance(started, datetime):
        return float(billable or 0)
    ended = described.get("TrainingEndTime")
    end = ended.timestamp() if ended else now + STOP_SECONDS
    return max(end - started.timestamp(), 0.0)
