"""Records a training job that a team's own pipeline has started.

SageMaker's events may come twice and in any order, so nothing of them is believed but the job's
name: the job itself says whose it is and when it ran, and the ledger takes it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import CompilegateError
from compilegate.domain.flag_change import flag_of
from compilegate.domain.production.ending import Ending, job_end
from compilegate.domain.production.machines import machines_of, machines_used
from compilegate.domain.production.runs import TEAM, ProductionRun
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services
from compilegate.usecases.change_flag import flag_history
from compilegate.usecases.outcome import ENDED
from compilegate.usecases.production.canary import record_canary
from compilegate.usecases.production.ended import describe
from compilegate.usecases.production.production_job import load_registered
from compilegate.usecases.production.run_evidence import (
    billable_seconds,
    failed,
    read_evidence,
    times,
)

WHY = "team"
UNTOLD_ARM = "unknown"


class NotOursError(CompilegateError):
    """A job that is no team's production run of a registered workload, or has not ended."""


def record_team_run(workload: str, job: str, *, services: Services) -> ProductionRun:
    """The run as the ledger has it; a job that was recorded before is found there.

    Raises NotOursError for a job of anything else.
    """
    described = describe(job, services)
    if described is None:
        raise NotOursError(f"SageMaker knows no training job {job}")
    tags = services.jobs.tags(job)
    _refuse_others(workload, job, tags, str(described["TrainingJobStatus"]))
    _refuse_other_deployments(job, tags, services.settings.stage)
    run = _run(workload, described, tags, services)
    entry = services.ledger.put_once(
        workload, ledger_keys.run_entry(run.run, job), run.to_entry(services.clock.now())
    )
    recorded = ProductionRun.from_entry(entry)
    record_canary(workload, recorded, job=None, services=services)
    return recorded


def _refuse_others(workload: str, job: str, tags: Mapping[str, str], status: str) -> None:
    if tags.get(naming.TAG_STAGE) != naming.TEAM_STAGE or tags.get(naming.TAG_WORKLOAD) != workload:
        raise NotOursError(
            f"{job} does not carry the tags {naming.TAG_STAGE}={naming.TEAM_STAGE} and "
            f"{naming.TAG_WORKLOAD}={workload}"
        )
    if status not in ENDED:
        raise NotOursError(f"{job} has not ended ({status}): its end will be told")


def _refuse_other_deployments(job: str, tags: Mapping[str, str], stage: str) -> None:
    """Every deployment of an account hears of every team's job; a job may name whose flag it read.

    Raises NotOursError where that is another one's.
    """
    followed = tags.get(naming.TAG_DEPLOYMENT)
    if followed not in (None, stage):
        raise NotOursError(f"{job} followed the flag of the deployment {followed}, not of {stage}")


def _run(
    workload: str, described: Mapping[str, Any], tags: Mapping[str, str], services: Services
) -> ProductionRun:
    try:
        registered = load_registered(workload, services).spec.workload
    except CompilegateError as error:
        raise NotOursError(f"{workload} is not in production: {error}") from error
    end, now = job_end(described, "", ""), float(services.clock.now())
    result, reason = failed(None, end.reason), end.reason
    counts = end.about_arm
    if end.ending is Ending.COMPLETED:
        found, problem = read_evidence(described, registered.quality.metric, services)
        result, counts, reason = found, problem is None, problem or found.get("reason")
    arm = tags.get(naming.TAG_ARM)
    proves_nothing = _proves_nothing(described, arm, registered, services)
    if proves_nothing is not None:
        counts, reason = False, proves_nothing
    began, over = times(described, otherwise=now)
    return ProductionRun(
        run=naming.trial_id(int(began * 1000)),
        job=str(described["TrainingJobName"]),
        arm=arm or UNTOLD_ARM,
        started_at=began,
        ended_at=over,
        result=result,
        counts=counts,
        why=WHY,
        launched_by=TEAM,
        status=end.status,
        reason=reason,
        decision_id=tags.get(naming.TAG_DECISION),
        instance_type=machines_used(described).instance_type,
        billable_seconds=billable_seconds(described),
        details={"ending": str(end.ending)},
    )


def _proves_nothing(
    described: Mapping[str, Any], arm: str | None, registered: Workload, services: Services
) -> str | None:
    """Why it is no evidence whatever it left, None where it may be."""
    if arm is None:
        return f"its tag {naming.TAG_ARM} is missing: the arm is not known"
    flags = [flag_of([entry]) for entry in flag_history(registered.name, services)]
    wanted, used = machines_of(arm, registered.training, flags), machines_used(described)
    if used == wanted:
        return None
    return f"it trained on {used.told}, and {arm} trains on {wanted.told}: no evidence"
