"""Records a training job that a team's own pipeline has started.

SageMaker's events may come twice and in any order, so nothing of them is believed but the job's
name: the job itself says whose it is and when it ran, and the ledger takes it once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import CompilegateError
from compilegate.domain.production.attempt import Attempt
from compilegate.domain.production.ending import Ending, job_end
from compilegate.domain.production.recorded_run import (
    END,
    WATCH,
    JobEvidence,
    refusal,
    team_run,
)
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import flag_versions, repair_if_possible
from compilegate.usecases.production.close_canary import close_after_run
from compilegate.usecases.production.job_evidence import describe, job_evidence
from compilegate.usecases.registration.load import load_registered

logger = logging.getLogger("compilegate")


def record_team_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """The job's record; ``next`` is ``watch`` or ``end``. One that was recorded before is found.

    A job that is no team's production run of this workload is not recorded.
    """
    workload, job = str(event["workload"]), str(event["job"])
    described = describe(job, services.jobs)
    tags = {} if described is None else services.jobs.tags(job)
    problem = f"SageMaker knows no training job {job}" if described is None else refusal(
        workload, described, tags, stage=services.settings.stage
    )  # fmt: skip
    registered = None
    if problem is None:
        try:
            registered = load_registered(workload, services.store).spec.workload
        except CompilegateError as error:
            problem = f"{workload} is not in production: {error}"
    if described is None or registered is None:
        logger.warning("%s: not recorded: %s", job, problem, extra={"workload": workload})
        return _answer(END, None, problem, None)
    run = _record(described, tags, registered, services)
    # A team's pipeline reads the parameter itself: what its next run reads has to be right.
    repair_if_possible(workload, services)
    return _answer(WATCH if run.counts else END, run, run.reason, registered.owner)


def _record(
    described: Mapping[str, Any], tags: Mapping[str, str], registered: Workload, services: Services
) -> ProductionRun:
    evidence = JobEvidence()
    if job_end(described, "", "").ending is Ending.COMPLETED:
        evidence = job_evidence(described, registered.quality.metric, services.store)
    versions, now = flag_versions(registered.name, services), services.clock.now()
    run = team_run(described, tags, evidence, registered.training, versions, now=now)
    entry = services.ledger.put_once(registered.name, run.key, run.to_entry())
    recorded = ProductionRun.from_entry(entry)
    close_after_run(registered.name, recorded, job=None, services=services)
    return recorded


def _answer(
    step: str, run: ProductionRun | None, reason: str | None, owner: str | None
) -> dict[str, Any]:
    return {
        "next": step,
        "run": run.run if run else None,
        "arm": run.arm if run else None,
        "status": run.status if run else "Ignored",
        "reason": reason,
        "counts": run is not None and run.counts,
        "attempt": Attempt().to_dict(),
        "wait_seconds": 0,
        "owner": owner,
        "tell": None,
    }
