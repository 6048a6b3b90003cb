"""An execution of the TRAIN machine that ended badly, and which of its jobs nobody has recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from compilegate.domain import naming
from compilegate.domain.failures import explain
from compilegate.domain.fields import Fields
from compilegate.domain.outside import BROKEN
from compilegate.domain.production.attempts import AttemptEnd, attempt_number, attempt_of
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.orphans import FAILED
from compilegate.domain.records.runs import BegunRun


@dataclass(frozen=True)
class EndedExecution:
    """How it ended; ``workload`` is None where its input names none, as for a team's job."""

    execution: str
    workload: str | None
    status: str
    why: str

    @classmethod
    def from_event(cls, detail: Mapping[str, Any]) -> Self:
        """Read the ``detail`` of Step Functions' event."""
        execution = Fields(detail, "detail").text("executionArn")
        status = str(detail.get("status"))
        return cls(
            execution=execution,
            workload=_workload_of(detail),
            status=status,
            why=explain(str(detail.get("error") or status), str(detail.get("cause") or "")),
        )

    @property
    def leaves_jobs(self) -> bool:
        """Whether its job trains on, because its model is needed: nobody has stopped it."""
        return self.status == FAILED


def _workload_of(detail: Mapping[str, Any]) -> str | None:
    """The workload that an execution's input names; whoever starts one by hand may write any."""
    try:
        document = json.loads(detail.get("input") or "{}")
    except BROKEN:
        return None
    workload = document.get("workload") if isinstance(document, Mapping) else None
    return workload if isinstance(workload, str) else None


def unrecorded_attempts(
    workload: str, begun: BegunRun, past: WorkloadHistory, same_prefix: Iterable[str]
) -> list[AttemptEnd]:
    """The attempts of a run that the ledger does not have.

    ``same_prefix`` are the jobs whose names begin like its own. Of a run without any job it is the
    first, which never was.
    """
    waits = past.waits_of(begun.run)
    recorded = {run.job for run in past.runs if run.run == begun.run}
    jobs = {*naming.own_jobs(workload, begun.run, same_prefix)}
    unrecorded = sorted(jobs - recorded - {wait.job for wait in waits})
    if not unrecorded and not recorded:
        unrecorded = [naming.job_base(workload, begun.run, naming.attempt(0))]
    return [
        AttemptEnd(workload, begun.run, job, attempt_of(attempt_number(job), waits))
        for job in unrecorded
    ]
