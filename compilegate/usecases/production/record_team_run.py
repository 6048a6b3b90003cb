"""Records a training job that a team's own pipeline has started.

SageMaker's events may come twice and in any order, so only the job's name is taken from them: the
job itself says which workload it trains and when it ran, and the ledger takes it once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import CompilegateError
from compilegate.domain.fields import Fields
from compilegate.domain.production.attempts import RunAnswer
from compilegate.domain.production.recorded_run import END, WATCH, run_answer
from compilegate.domain.production.team_run import job_of_another_role, refusal, team_run
from compilegate.domain.reasons import advice
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.workload.model import Workload
from compilegate.ports import Services
from compilegate.usecases.canary import close_after_run
from compilegate.usecases.flag.change_flag import flag_versions, repair_if_possible
from compilegate.usecases.registered import load_registered

logger = logging.getLogger("compilegate")


def record_team_run(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Record the job that ``event`` names (workload, job) once; ``next`` is ``watch`` or ``end``.

    A job that is not a team's production run of this workload is not recorded as one; the ledger
    keeps that one of another role claimed to be.
    """
    fields = Fields(event, "event")
    workload, job = fields.text("workload"), fields.text("job")
    described = services.jobs.describe(job)
    if not described:
        return _ignored(workload, job, f"SageMaker knows no training job {job}")
    tags = services.jobs.tags(job)
    problem = refusal(workload, described, tags, stage=services.settings.stage)
    if problem is not None:
        return _ignored(workload, job, problem)
    try:
        registered = load_registered(workload, services.store).spec.workload
    except CompilegateError as error:
        return _ignored(workload, job, f"{workload} is not in production: {error}")
    foreign = job_of_another_role(
        described, services.settings.role_of(workload), registered, now=services.clock.now()
    )
    if foreign is not None:
        services.ledger.append(workload, foreign)
        fix = advice(foreign.code)
        return _ignored(workload, job, f"it ran as {foreign.role} ({foreign.code}). {fix}")
    run = _record(described, tags, registered, services)
    # A team's pipeline reads the parameter itself: what its next run reads has to be right.
    repair_if_possible(workload, services)
    return run_answer(WATCH if run.counts else END, run, registered.owner).to_dict()


def _ignored(workload: str, job: str, problem: str) -> dict[str, Any]:
    logger.warning("%s: not recorded: %s", job, problem, extra={"workload": workload})
    return RunAnswer(END, reason=problem).to_dict()


def _record(
    described: Mapping[str, Any], tags: Mapping[str, str], registered: Workload, services: Services
) -> ProductionRun:
    evidence = services.outputs.production_run(described, registered.quality.metric)
    versions, now = flag_versions(registered.name, services), services.clock.now()
    run = team_run(described, tags, evidence, registered.training, versions, now=now)
    recorded = services.ledger.put_once(registered.name, run)
    close_after_run(registered.name, recorded, job=None, services=services)
    return recorded
