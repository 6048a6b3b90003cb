"""A training job's record: its status over time and what Describe shows of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

FAILURE_REASON_MAX = 1024  # characters; limit of FailureReason in the service model
TERMINAL = frozenset({"Completed", "Failed", "Stopped"})
_NOT_DESCRIBED = frozenset({"Tags", "ExperimentConfig"})

# As SageMaker words a failure of its own.
_LOST = "InternalServerError: We encountered an internal error. Please try again."


class StopCause(StrEnum):
    """Why a running job is being stopped."""

    REQUESTED = "Stopped"
    MAX_RUNTIME = "MaxRuntimeExceeded"


class TrainingJob:
    """One job; safe to read while it runs. ``on_change`` is called at every status change.

    ``kept`` is what ``to_keep`` said of a job of an emulator that was killed.
    """

    def __init__(
        self,
        request: dict[str, Any],
        *,
        account: str,
        region: str,
        folder: Path,
        on_change: Callable[[TrainingJob], None],
        kept: dict[str, Any] | None = None,
    ) -> None:
        self.request, self.account, self.region, self.folder = request, account, region, folder
        self.name: str = request["TrainingJobName"]
        self.arn = f"arn:aws:sagemaker:{region}:{account}:training-job/{self.name}"
        self.tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or []}
        self.finished, self.stopping = threading.Event(), threading.Event()
        self.stop_cause: StopCause | None = None
        self.metrics: dict[str, tuple[float, float]] = {}
        self.model_uri: str | None = None
        self.created = time.time()
        self.started: float | None = None
        self.ended: float | None = None
        self._on_change, self._lock = on_change, threading.RLock()
        self._status, self._failure_reason = "InProgress", ""
        self._transitions: list[dict[str, Any]] = []
        if kept is None:
            self.enter("Starting", "Preparing the instances for training")
        else:
            self._restore(kept)

    @property
    def status(self) -> str:
        """TrainingJobStatus."""
        return self._status

    @property
    def measures_speed(self) -> bool:
        """Whether the job measures speed, which other jobs beside it would disturb."""
        return self.tags.get("compilegate:stage") == "speed"

    def enter(self, secondary: str, message: str) -> None:
        """Go on to the next secondary status; ignored once the job has ended."""
        with self._lock:
            if self._status in TERMINAL:
                return
            if self._status == "Stopping" and secondary not in ("Stopping", "Uploading"):
                return
            self._add_transition(secondary, message)
        self._on_change(self)

    def begin_billing(self) -> None:
        """The instances are running: the job is billed from now on."""
        self.started = time.time()

    def request_stop(self, cause: StopCause) -> bool:
        """Ask the job to stop; False if it has ended or is stopping already."""
        with self._lock:
            if self._status in TERMINAL or self.stop_cause is not None:
                return False
            self.stop_cause = cause
            self._status = "Stopping" if cause is StopCause.REQUESTED else self._status
            self._add_transition("Stopping", "Stopping the training job")
        self.stopping.set()
        self._on_change(self)
        return True

    def complete(self) -> None:
        """The job has completed."""
        self._end("Completed", "Completed", "Training job completed", "")

    def stop(self) -> None:
        """The job was stopped before its end."""
        cause = self.stop_cause or StopCause.REQUESTED
        self._end("Stopped", cause.value, "Training job stopped", "")

    def fail(self, reason: str) -> None:
        """The job failed; the reason is cut to what the service shows."""
        reason = reason[:FAILURE_REASON_MAX]
        self._end("Failed", "Failed", "Training job failed", reason)

    def lose(self, at: float) -> None:
        """The machine was lost at that time: nothing after it is billed."""
        if self.stop_cause is StopCause.REQUESTED:
            self._end("Stopped", self.stop_cause.value, "Training job stopped", "", at=at)
        else:
            self._end("Failed", "Failed", "Training job failed", _LOST, at=at)

    def to_keep(self) -> dict[str, Any]:
        """All that another emulator needs to describe it."""
        with self._lock:
            return {
                "tags": self.tags,
                "stop_cause": self.stop_cause,
                "metrics": self.metrics,
                "model_uri": self.model_uri,
                "created": self.created,
                "started": self.started,
                "ended": self.ended,
                "status": self._status,
                "failure_reason": self._failure_reason,
                "transitions": [dict(step) for step in self._transitions],
            }

    def _restore(self, kept: dict[str, Any]) -> None:
        self.tags, self.model_uri = kept["tags"], kept["model_uri"]
        self.created, self.started, self.ended = kept["created"], kept["started"], kept["ended"]
        self.stop_cause = StopCause(kept["stop_cause"]) if kept["stop_cause"] else None
        self.metrics = {name: (value, at) for name, (value, at) in kept["metrics"].items()}
        self._status, self._failure_reason = kept["status"], kept["failure_reason"]
        self._transitions = kept["transitions"]
        if self._status in TERMINAL:
            self.finished.set()

    def describe(self) -> dict[str, Any]:
        """DescribeTrainingJob's answer; times in epoch seconds."""
        with self._lock:
            shown = {k: v for k, v in self.request.items() if k not in _NOT_DESCRIBED}
            shown.update(self._flags())
            shown.update(
                TrainingJobName=self.name,
                TrainingJobArn=self.arn,
                TrainingJobStatus=self._status,
                SecondaryStatus=self._transitions[-1]["Status"],
                SecondaryStatusTransitions=[dict(step) for step in self._transitions],
                CreationTime=self.created,
                LastModifiedTime=self._transitions[-1].get("EndTime")
                or self._transitions[-1]["StartTime"],
            )
            shown.update(self._timing())
            shown.update(self._outcome())
            return shown

    def _flags(self) -> dict[str, bool]:
        names = (
            "EnableNetworkIsolation",
            "EnableInterContainerTrafficEncryption",
            "EnableManagedSpotTraining",
        )
        return {name: bool(self.request.get(name, False)) for name in names}

    def _timing(self) -> dict[str, Any]:
        timing: dict[str, Any] = {}
        if self.started is not None:
            timing["TrainingStartTime"] = self.started
        if self.ended is not None:
            timing["TrainingEndTime"] = self.ended
            # Wall clock of the cluster; the reader multiplies by the number of instances.
            seconds = math.ceil(self.ended - self.started) if self.started is not None else 0
            timing["TrainingTimeInSeconds"] = timing["BillableTimeInSeconds"] = seconds
        return timing

    def _outcome(self) -> dict[str, Any]:
        outcome: dict[str, Any] = {}
        if self._failure_reason:
            outcome["FailureReason"] = self._failure_reason
        if self.model_uri is not None:
            outcome["ModelArtifacts"] = {"S3ModelArtifacts": self.model_uri}
        if self.metrics:
            outcome["FinalMetricDataList"] = [
                {"MetricName": name, "Value": value, "Timestamp": at}
                for name, (value, at) in self.metrics.items()
            ]
        return outcome

    def _add_transition(self, secondary: str, message: str, at: float | None = None) -> None:
        now = time.time() if at is None else max(at, self._transitions[-1]["StartTime"])
        if self._transitions:
            self._transitions[-1]["EndTime"] = now
        self._transitions.append({"Status": secondary, "StartTime": now, "StatusMessage": message})

    def _end(
        self, status: str, secondary: str, message: str, reason: str, *, at: float | None = None
    ) -> None:
        with self._lock:
            if self._status in TERMINAL:
                return
            self._failure_reason = reason
            self._add_transition(secondary, reason or message, at)
            self.ended = self._transitions[-1]["StartTime"]
            self._transitions[-1]["EndTime"] = self.ended
            self._status = status
        self.finished.set()
        self._on_change(self)


def tag_list(job: TrainingJob) -> list[dict[str, str]]:
    """The job's tags as the service lists them."""
    return [{"Key": key, "Value": value} for key, value in job.tags.items()]
