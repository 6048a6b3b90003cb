"""Takes the outcome of one job into the evidence document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError, NotFoundError
from compilegate.usecases import evidence_document
from compilegate.usecases.collect import failed_quality_run, quality_run, speed_runs
from compilegate.usecases.job_output import JobOutput, read_output
from compilegate.usecases.trial import OpenTrial

COMPLETED = "Completed"
TIMED_OUT = "MaxRuntimeInSeconds"


class InfrastructureFailureError(CompilegateError):
    """The cloud could not run a job; that says nothing about the arm, so the trial ends."""


def take_in_round(
    outcomes: Sequence[Mapping[str, Any]], document: dict[str, Any], opened: OpenTrial
) -> None:
    """Add the runs of a round's jobs; repeating it adds nothing.

    Raises InfrastructureFailureError, InvalidEvidenceError.
    """
    for outcome in outcomes:
        _take_in(outcome, document, opened)


def refuse_foreign_stops(outcomes: Sequence[Mapping[str, Any]]) -> None:
    """Raise InfrastructureFailureError for a job that was stopped, and not by this trial.

    The trial stops a round's jobs when one of them fails, and those of an arm that is settled.
    """
    if any(has_failed(outcome) for outcome in outcomes):
        return
    own = {arm for outcome in outcomes for arm in outcome.get("settled_arms", ())}
    foreign = [
        str(outcome["job"])
        for outcome in outcomes
        if was_stopped(outcome) and naming.parse_run(str(outcome["run"])).arm_index not in own
    ]
    if foreign:
        raise InfrastructureFailureError(
            f"stopped before the end, not by this trial: {', '.join(foreign)}"
        )


def was_stopped(outcome: Mapping[str, Any]) -> bool:
    """Whether somebody stopped the job; one at its time limit was not, it failed."""
    return outcome["status"] == "Stopped" and TIMED_OUT not in str(outcome.get("reason"))


def has_failed(outcome: Mapping[str, Any]) -> bool:
    """Whether the run neither completed nor was stopped."""
    return outcome["status"] != COMPLETED and not was_stopped(outcome)


def _take_in(outcome: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial) -> None:
    job = str(outcome["job"])
    if outcome.get("infrastructure"):
        raise InfrastructureFailureError(f"{job} could not run: {outcome.get('reason')}")
    if any(run["job"] == job for run in evidence_document.all_runs(document)):
        return
    if was_stopped(outcome):
        return  # it could no longer change the verdict: no result of this arm
    run = naming.parse_run(str(outcome["run"]))
    if outcome["status"] != COMPLETED:
        _take_in_failure(outcome, document, opened, run)
    elif run.is_speed:
        _take_in_blocks(job, document, opened)
    else:
        _take_in_full_run(job, document, opened, run)


def _take_in_blocks(job: str, document: dict[str, Any], opened: OpenTrial) -> None:
    found = list(speed_runs(_output(opened, job), job=job))
    if not found:
        raise InvalidEvidenceError(f"{job} completed and left no evidence of any block")
    for name, run in found:
        evidence_document.add_run(document, name, run)


def _take_in_full_run(
    job: str, document: dict[str, Any], opened: OpenTrial, asked: naming.RunId
) -> None:
    run = quality_run(
        _output(opened, job),
        job=job,
        order=evidence_document.next_order(document),
        metric=opened.spec.workload.quality.metric,
    )
    if run["seed"] != asked.seed:
        raise InvalidEvidenceError(
            f"{job} was asked to train with seed {asked.seed} and recorded {run['seed']!r}: a "
            "script that ignores its seed says nothing about chance"
        )
    evidence_document.add_run(document, opened.plan["arms"][asked.arm_index]["name"], run)


def _output(opened: OpenTrial, job: str) -> JobOutput:
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job)
    try:
        return read_output(opened.services.store.get(key))
    except NotFoundError:
        return JobOutput()


def _take_in_failure(
    outcome: Mapping[str, Any],
    document: dict[str, Any],
    opened: OpenTrial,
    asked: naming.RunId,
) -> None:
    job, reason = str(outcome["job"]), str(outcome.get("reason") or "no reason given")
    if asked.arm_index is None or asked.seed is None:
        blocks = [run["block"] for run in evidence_document.all_runs(document) if "block" in run]
        evidence_document.add_failed_block(document, job, max(blocks, default=-1) + 1, reason)
        return
    order = evidence_document.next_order(document)
    run = failed_quality_run(job=job, order=order, seed=asked.seed, reason=reason)
    evidence_document.add_run(document, opened.plan["arms"][asked.arm_index]["name"], run)
