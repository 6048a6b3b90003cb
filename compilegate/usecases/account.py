"""What a trial's jobs have cost, those included that nobody waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.speed_jobs import usd_per_hour
from compilegate.ports import Services
from compilegate.usecases import evidence_document
from compilegate.usecases.trial import OpenTrial

# A job that is told to stop may take as long.
STOP_SECONDS = 120
IN_PROGRESS = "InProgress"

Outcomes = Sequence[Mapping[str, Any]]


def charge_round(outcomes: Outcomes, document: dict[str, Any], opened: OpenTrial) -> None:
    """Put the round's jobs on the trial's account, whatever came of them."""
    for outcome in outcomes:
        _charge(str(outcome["job"]), naming.parse_run(str(outcome["run"])), document, opened)


def settle_strays(
    outcomes: Outcomes, document: dict[str, Any], opened: OpenTrial, round_number: int
) -> None:
    """Stop and charge jobs of earlier rounds that nobody waits for.

    CreateTrainingJob may start a job and its answer be lost; the retry then starts another one.
    Jobs of this round number or later are not touched: a repeated call that comes late must not
    stop what the first one's answer has started.
    """
    trial, jobs = opened.trial, opened.services.jobs
    waited_for = {run["job"] for run in evidence_document.all_runs(document)}
    waited_for |= {outcome["job"] for outcome in outcomes}
    statuses = jobs.statuses(naming.trial_job_prefix(trial.workload, trial.trial))
    for job, status in statuses.items():
        run = naming.job_run(trial.workload, trial.trial, job)
        if job in waited_for or run is None or run.round_number >= round_number:
            continue
        if status == IN_PROGRESS:
            jobs.stop(job)
        _charge(job, run, document, opened)


def _charge(job: str, run: naming.RunId, document: dict[str, Any], opened: OpenTrial) -> None:
    """Billable seconds are the cluster's wall clock; the arm's price is that of the cluster."""
    arms = [ArmPlan.from_dict(arm) for arm in opened.plan["arms"]]
    usd = _billable_seconds(job, opened.services) / 3600 * usd_per_hour(run, arms)
    evidence_document.charge(document, job, usd)


def _billable_seconds(job: str, services: Services) -> float:
    """What SageMaker bills, or will bill at most for a job that is being stopped."""
    try:
        described = services.jobs.describe(job)
    except NotFoundError:
        return 0.0
    billable, started = described.get("BillableTimeInSeconds"), described.get("TrainingStartTime")
    if billable is not None or not isinstance(started, datetime):
        return float(billable or 0)
    ended = described.get("TrainingEndTime")
    end = ended.timestamp() if ended else services.clock.now() + STOP_SECONDS
    return max(end - started.timestamp(), 0.0)
