"""A run has ended: say how, and stop what of its round can no longer change the verdict.

A failed run stops the whole round. A full run that completed, or was stopped, makes the judge
look at what there is: where it holds an arm for settled, that arm's other jobs are stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import explain_job
from compilegate.domain.judge import judge as ask_judge
from compilegate.ports import Services
from compilegate.usecases.early_look import stop_settled_arms
from compilegate.usecases.judging import Judge
from compilegate.usecases.stop_jobs import stop_jobs
from compilegate.usecases.take_in import COMPLETED, has_failed, was_stopped
from compilegate.usecases.trial import Trial

logger = logging.getLogger("compilegate")


def settle_run(
    event: Mapping[str, Any], *, services: Services, judge: Judge = ask_judge
) -> dict[str, Any]:
    """The run's outcome for JudgeArms; ``settled_arms`` are those that this trial stopped.

    Safe to repeat: the answer depends on the evidence, not on what is still running.
    """
    outcome = _outcome(event)
    run = naming.parse_run(str(event["run"]))
    settled = [] if has_failed(outcome) or run.is_speed else _look(event, outcome, services, judge)
    stopped_by_others = was_stopped(outcome) and run.arm_index not in settled
    if has_failed(outcome) or stopped_by_others:
        stop_jobs(Trial.from_event(event), services=services)
    return {**outcome, "settled_arms": settled}


def _outcome(event: Mapping[str, Any]) -> dict[str, Any]:
    ended = {"run": event["run"], "job": event["job"]}
    if event.get("status") == COMPLETED:
        return {**ended, "status": COMPLETED, "reason": None}
    failure = explain_job(str(event.get("cause", "")))
    return {
        **ended,
        "status": failure.status,
        "reason": failure.reason,
        "infrastructure": failure.infrastructure,
    }


def _look(
    event: Mapping[str, Any], outcome: Mapping[str, Any], services: Services, judge: Judge
) -> list[int]:
    """The look can only save money: whatever goes wrong with it must not cost the run."""
    try:
        return stop_settled_arms(event, outcome, services=services, judge=judge)
    except Exception:
        logger.exception("no early look at %s", event["job"], extra={"run": event["run"]})
        return []
