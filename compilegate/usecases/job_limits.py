"""The time limit of each job of a round: the trial's money bounds it, whatever the job does.

However long jobs may run, what is spent and every job of the round at its limit together stay
within policy.max_trial_usd.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.estimate import job_hours
from compilegate.domain.planning.rounds import job_seconds, speed_job_seconds
from compilegate.domain.planning.speed_jobs import SpeedJob, speed_jobs
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases import evidence_document
from compilegate.usecases.account import STOP_SECONDS
from compilegate.usecases.outcome import Outcome, timed_out
from compilegate.usecases.trial import OpenTrial

HOUR = 3600
CANARY = "canary"


def speed_jobs_of(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> list[SpeedJob]:
    """The jobs that a speed step takes: one, or one per block and group of nodes.

    Controls decide nothing, so what the budget does not hold with them is run without.
    """
    jobs = _with_controls(step, document, opened)
    stopping = math.fsum(job.usd_per_hour * STOP_SECONDS / HOUR for job in jobs)
    wanted = max(asked_usd(step, opened.plan), _usd(_speed_seconds(jobs, opened))) + stopping
    if wanted <= opened.plan["max_trial_usd"] - document["plan"]["spent_usd"]:
        return jobs
    return [job for job in jobs if job.decides]


def _with_controls(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> list[SpeedJob]:
    arms = [ArmPlan.from_dict(arm) for arm in opened.plan["arms"]]
    return speed_jobs(arms, step, evidence_document.control_blocks(document))


def is_carried(step: Mapping[str, Any]) -> bool:
    """Whether production's own runs carry the step."""
    return step.get("mode") == CANARY


def asked_usd(step: Mapping[str, Any], plan: Mapping[str, Any]) -> float:
    """The step's own price; where the judge knows none, the plan's upper one."""
    if step.get("usd") is not None:
        return float(step["usd"])
    if step["stage"] == "speed":
        return float(plan["usd_per_block"]) * int(step["blocks"])
    return float(plan["usd_per_quality_run"]) * len(step["runs"])


def wanted_usd(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> float:
    """What the step takes of the budget, stopping its jobs included.

    Of runs that production carries only a candidate that is lost costs the trial anything: its
    night is made again with the baseline. So much has to be left.
    """
    if is_carried(step):
        lost = {**step, "runs": [run for run in step["runs"] if run["arm"] != BASELINE][:1]}
        return expected_usd(lost, document, opened)
    asked, expected = asked_usd(step, opened.plan), expected_usd(step, document, opened)
    if step["stage"] == "speed":  # it was asked for with controls
        full = _usd(_speed_seconds(_with_controls(step, document, opened), opened))
        asked *= expected / full
    return max(asked, expected) + stopping_usd(step, document, opened)


def affordable_seconds(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> list[int]:
    """How long each of the step's jobs may take: its share of what the rest of the budget allows.

    Shares are as the jobs are expected to take, so that none is cut off before its time.
    """
    left = float(opened.plan["max_trial_usd"] - document["plan"]["spent_usd"])
    left -= stopping_usd(step, document, opened)
    share = left / expected_usd(step, document, opened)
    return [math.floor(share * seconds) for _, seconds in _expected(step, document, opened)]


def expected_usd(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> float:
    """What the step's jobs cost where each takes as long as the plan thinks."""
    return _usd(_expected(step, document, opened))


def stopping_usd(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> float:
    """What it costs to stop all of the step's jobs: they are billed until they have ended."""
    return math.fsum(rate * STOP_SECONDS / HOUR for rate, _ in _expected(step, document, opened))


def _expected(
    step: Mapping[str, Any], document: evidence_document.Document, opened: OpenTrial
) -> list[tuple[float, float]]:
    """USD per hour and seconds of each of the step's jobs, which run side by side."""
    workload = opened.spec.workload
    most, hours = job_seconds(workload.training.max_runtime_hours), workload.schedule.run_hours
    if step["stage"] == "speed":
        return _speed_seconds(speed_jobs_of(step, document, opened), opened)
    rates = {str(arm["name"]): float(arm["usd_per_hour"]) for arm in opened.plan["arms"]}
    own = rates[BASELINE]
    # As planned: a dearer cluster gets full runs only once it is faster by its price.
    return [
        (rate, min(hours * HOUR * min(1.0, own / rate), most))
        for rate in (rates[run["arm"]] for run in step["runs"])
    ]


def _speed_seconds(jobs: list[SpeedJob], opened: OpenTrial) -> list[tuple[float, float]]:
    workload = opened.spec.workload
    most, hours = job_seconds(workload.training.max_runtime_hours), workload.schedule.run_hours
    return [(job.usd_per_hour, min(job_hours(job, hours) * HOUR, most)) for job in jobs]


def _usd(jobs: list[tuple[float, float]]) -> float:
    return math.fsum(rate * seconds / HOUR for rate, seconds in jobs)


def stopped_by_budget(outcome: Outcome, opened: OpenTrial) -> bool:
    """Whether the job reached a limit that the workload would not have set."""
    if not timed_out(outcome):
        return False
    try:
        described = opened.services.jobs.describe(str(outcome["job"]))
    except NotFoundError:
        return False
    own = _own_limit(str(outcome["run"]), described, opened)
    limit = (described.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds", own)
    return bool(limit < own)


def _own_limit(run: str, described: Mapping[str, Any], opened: OpenTrial) -> int:
    """The limit that the job has whatever the budget; a speed job's follows its segments."""
    hours = opened.spec.workload.training.max_runtime_hours
    told = described.get("HyperParameters") or {}
    if not naming.parse_run(run).is_speed or "blocks" not in told:
        return job_seconds(hours)
    arms = sum(key.startswith("arm_") for key in told)
    return speed_job_seconds(hours, arms=arms, blocks=int(told["blocks"]))
