"""A run has ended: say how, and stop what of its round can no longer change the verdict.

What a full run ended with, be it a crash, makes the judge look at what there is: where it holds
an arm for lost, that arm's other jobs are stopped, and those whose turn is still to come are
withdrawn. Where the cloud could not run a job, or somebody else stopped it, the round is stopped;
not so for a control, which decides nothing, nor where the account's quota left no room for a job
for hours, which says nothing about the others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR
from compilegate.domain.judging.judge import judge as ask_judge
from compilegate.ports import Services
from compilegate.usecases.control_jobs import controls_of_run
from compilegate.usecases.early_look import stop_settled_arms
from compilegate.usecases.judging import Judge
from compilegate.usecases.outcome import COMPLETED, could_not_run, failed_outcome, was_stopped
from compilegate.usecases.stop_jobs import stop_round, stopped_by_trial
from compilegate.usecases.trial import Trial, load_record

logger = logging.getLogger("compilegate")


def settle_run(
    event: Mapping[str, Any], *, services: Services, judge: Judge = ask_judge
) -> dict[str, Any]:
    """The run's outcome for JudgeArms; ``settled_arms`` are those that its look gave up.

    Safe to repeat: the answer depends on the evidence, not on what is still running.
    """
    outcome, trial = _outcome(event), Trial.from_event(event)
    run, settled = naming.parse_run(str(event["run"])), list[int]()
    if run.group and controls_of_run(run, load_record(services.store, trial, "plan")):
        return {**outcome, "settled_arms": settled}
    if could_not_run(outcome) or _stopped_by_others(outcome, trial, services):
        if event.get("error") != RESOURCE_LIMIT_ERROR:
            stop_round(trial, event["runs"], services=services)
    elif not run.is_speed:
        settled = _look(event, outcome, services, judge)
    return {**outcome, "settled_arms": settled}


def _outcome(event: Mapping[str, Any]) -> dict[str, Any]:
    run, job = str(event["run"]), str(event["job"])
    if event.get("status") == COMPLETED:
        return {"run": run, "job": job, "status": COMPLETED, "reason": None}
    return failed_outcome(run, job, str(event.get("cause", "")))


def _stopped_by_others(outcome: Mapping[str, Any], trial: Trial, services: Services) -> bool:
    own = stopped_by_trial(str(outcome["job"]), trial, services=services)
    return was_stopped(outcome) and not own


def _look(
    event: Mapping[str, Any], outcome: Mapping[str, Any], services: Services, judge: Judge
) -> list[int]:
    """The look can only save money: whatever goes wrong with it must not cost the run."""
    try:
        return stop_settled_arms(event, outcome, services=services, judge=judge)
    except Exception:
        logger.exception("no early look at %s", event["job"], extra={"run": event["run"]})
        return []
