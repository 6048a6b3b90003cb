"""The time limit of each job of a round: the trial's money bounds it, whatever the job does.

However long jobs may run, what is spent and every job of the round at its limit together stay
within policy.max_trial_usd.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import NotFoundError
from compilegate.domain.rounds import job_seconds, speed_job_seconds
from compilegate.usecases.account import STOP_SECONDS
from compilegate.usecases.outcome import Outcome, timed_out
from compilegate.usecases.trial import OpenTrial

HOUR = 3600


def limit_seconds(step: Mapping[str, Any], document: Mapping[str, Any], opened: OpenTrial) -> int:
    """Each job's limit: the workload's own, or what the rest of the budget allows, if less."""
    hours = opened.spec.workload.training.max_runtime_hours
    most = job_seconds(hours)
    if step["stage"] == "speed":
        most = speed_job_seconds(hours, arms=len(step["arms"]), blocks=int(step["blocks"]))
    left = float(opened.plan["max_trial_usd"] - document["plan"]["spent_usd"])
    # A job at its limit is told to stop and billed until it does.
    affordable = left / usd_per_hour(step, opened.plan) * HOUR - STOP_SECONDS
    return min(most, math.floor(affordable))


def typical_seconds(step: Mapping[str, Any], opened: OpenTrial) -> float:
    """How long a job of the step takes by the plan, at most its limit."""
    workload, plan = opened.spec.workload, opened.plan
    hours = float(workload.schedule.run_hours)
    if step["stage"] == "speed":
        dearest = max(float(arm["usd_per_hour"]) for arm in plan["arms"])
        hours = float(plan["usd_per_block"]) / dearest * int(step["blocks"])
    return min(hours * HOUR, job_seconds(workload.training.max_runtime_hours))


def usd_per_hour(step: Mapping[str, Any], plan: Mapping[str, Any]) -> float:
    """What the step's jobs cost in an hour, side by side; a speed job runs as the baseline."""
    rates = {str(arm["name"]): float(arm["usd_per_hour"]) for arm in plan["arms"]}
    if step["stage"] == "speed":
        return float(plan["arms"][0]["usd_per_hour"])
    return math.fsum(rates[run["arm"]] for run in step["runs"])


def stopped_by_budget(outcome: Outcome, opened: OpenTrial) -> bool:
    """Whether the job reached a limit that the workload would not have set."""
    if not timed_out(outcome):
        return False
    try:
        described = opened.services.jobs.describe(str(outcome["job"]))
    except NotFoundError:
        return False
    own = job_seconds(opened.spec.workload.training.max_runtime_hours)
    limit = (described.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds", own)
    return bool(limit < own)
