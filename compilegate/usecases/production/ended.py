"""An attempt whose job has ended, with everything that recording it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.begun import Attempt, BegunRun
from compilegate.domain.production.ending import JobEnd, job_end
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.production.production_job import load_begun, spec_of
from compilegate.usecases.trial import Spec


@dataclass(frozen=True)
class Ended:
    """``described`` is SageMaker's description of the job, empty where it never was."""

    workload: str
    begun: BegunRun
    attempt: Attempt
    job: str
    end: JobEnd
    described: Mapping[str, Any]
    spec: Spec

    @property
    def arm(self) -> str:
        """The arm that the attempt trained."""
        return BASELINE if self.attempt.trains_baseline else self.begun.arm

    @property
    def as_chosen(self) -> bool:
        """Whether it trained what the run had chosen, on machines of its own type."""
        return not self.attempt.trains_baseline


def ended_attempt(event: Mapping[str, Any], services: Services) -> Ended:
    """The attempt that ``event`` tells of: workload, run, attempt, job, and the task's ``error``
    and ``cause`` where it failed. Raises NotFoundError for a run that was never begun.
    """
    workload, job = str(event["workload"]), str(event["job"])
    begun = load_begun(workload, str(event["run"]), services)
    described = describe(job, services)
    error, cause = str(event.get("error") or ""), str(event.get("cause") or "")
    return Ended(
        workload=workload,
        begun=begun,
        attempt=Attempt.from_dict(event["attempt"]),
        job=job,
        end=job_end(described, error, cause),
        described=described or {},
        spec=spec_of(begun, workload, services),
    )


def describe(job: str, services: Services) -> Mapping[str, Any] | None:
    """SageMaker's description, None for a job that it does not know."""
    try:
        return services.jobs.describe(job)
    except NotFoundError:
        return None
