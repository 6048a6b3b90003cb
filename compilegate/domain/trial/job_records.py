"""Records of a trial's jobs, and how they are read from the evidence document that keeps them.

A run that cannot be read stays a record: nothing that a job left is lost, and the trial is invalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import FullRun, SpeedRun
from compilegate.domain.judging.evidence_file import read_run

# One run, and the name of its arm.
ArmRun = tuple[str, SpeedRun | FullRun]


@dataclass(frozen=True)
class UnreadableRun:
    """A run that breaks its contract, and why; its record is kept as it is."""

    arm: str
    record: Any
    why: str

    @property
    def is_full(self) -> bool:
        """Whether it is a full run, as far as its record says."""
        return isinstance(self.record, Mapping) and self.record.get("stage") == "quality"


@dataclass(frozen=True)
class JobRecord:
    """What one job came to: its runs, none where it left no result, and its price.

    ``usd`` is None for a job that cost the trial nothing, and of epoch second ``at``: the price of
    a job that is still being stopped is not final. ``unreadable`` runs make the trial invalid.
    ``unmeasured`` are arms of which a speed job that completed left no segment.
    """

    job: str
    usd: float | None = None
    runs: tuple[ArmRun, ...] = ()
    at: int = 0
    unreadable: tuple[UnreadableRun, ...] = ()
    unmeasured: tuple[str, ...] = ()

    @property
    def has_runs(self) -> bool:
        """Whether the job left a run."""
        return bool(self.runs or self.unreadable)


@dataclass(frozen=True)
class TrialRecords:
    """Everything that is recorded: the jobs, and the rounds in which the cloud failed one."""

    jobs: tuple[JobRecord, ...] = ()
    lost_rounds: tuple[int, ...] = ()

    @property
    def with_runs(self) -> frozenset[str]:
        """Jobs that have left a run."""
        return frozenset(record.job for record in self.jobs if record.has_runs)


def read_records(document: Mapping[str, Any] | None) -> TrialRecords:
    """The records behind an evidence document of any release; what cannot be read is kept."""
    if document is None:
        return TrialRecords()
    prices: Mapping[str, float] = document["plan"]["usd_by_job"]
    unmeasured = document["plan"].get("unmeasured_by_job", {})
    by_job = {
        job: JobRecord(job, prices.get(job), unmeasured=tuple(unmeasured.get(job, ())))
        for job in (*prices, *(job for job in unmeasured if job not in prices))
    }
    for key, arms in (("arms", document["arms"]), ("controls", document.get("controls", ()))):
        for index, arm in enumerate(arms):
            for number, record in enumerate(arm["runs"]):
                path = f"{key}[{index}].runs[{number}]"
                job = str(record.get("job") or "") if isinstance(record, Mapping) else ""
                own = by_job.get(job, JobRecord(job))
                by_job[job] = with_run(own, str(arm["name"]), record, path)
    lost = tuple(document["plan"].get("lost_rounds", ()))
    return TrialRecords(tuple(by_job.values()), lost)


def with_run(job: JobRecord, arm: str, record: Any, path: str) -> JobRecord:
    """The job's record with this run, which may not be readable."""
    try:
        return replace(job, runs=(*job.runs, (arm, read_run(record, path))))
    except InvalidEvidenceError as error:
        broken = UnreadableRun(arm, record, str(error))
        return replace(job, unreadable=(*job.unreadable, broken))
