"""Takes the outcome of one job into the evidence document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import CompilegateError, InvalidEvidenceError, NotFoundError
from compilegate.ports import Services
from compilegate.usecases import evidence_document
from compilegate.usecases.collect import failed_quality_run, quality_run, read_tarball, speed_runs
from compilegate.usecases.trial import OpenTrial

TIMED_OUT = "MaxRuntimeInSeconds"


class InfrastructureFailureError(CompilegateError):
    """The cloud could not run a job; that says nothing about the arm, so the trial ends."""


def take_in_round(
    outcomes: Sequence[Mapping[str, Any]], document: dict[str, Any], opened: OpenTrial
) -> None:
    """Add the runs and cost of a round's jobs.

    Raises InfrastructureFailureError, InvalidEvidenceError.
    """
    for outcome in outcomes:
        _take_in(outcome, document, opened)
    stopped = [o for o in outcomes if _was_stopped(o)]
    if stopped and not any(_failed(o) for o in outcomes):
        names = ", ".join(str(outcome["job"]) for outcome in stopped)
        raise InfrastructureFailureError(f"stopped before the end, not by this trial: {names}")


def _was_stopped(outcome: Mapping[str, Any]) -> bool:
    return outcome["status"] == "Stopped" and TIMED_OUT not in str(outcome.get("reason"))


def _failed(outcome: Mapping[str, Any]) -> bool:
    return outcome["status"] != "Completed" and not _was_stopped(outcome)


def _take_in(outcome: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial) -> None:
    job = str(outcome["job"])
    if outcome.get("infrastructure"):
        raise InfrastructureFailureError(f"{job} could not run: {outcome.get('reason')}")
    if any(run["job"] == job for run in evidence_document.all_runs(document)):
        return
    run = naming.parse_run(str(outcome["run"]))
    # A speed job runs on the baseline's cluster.
    arm = opened.plan["arms"][run.arm_index or 0]
    _charge(document, arm, job, opened.services)
    if _was_stopped(outcome):
        return  # a sibling failed: no result of this arm
    if outcome["status"] != "Completed":
        _take_in_failure(outcome, document, arm, run)
    elif run.is_speed:
        _take_in_blocks(job, document, opened)
    else:
        _take_in_full_run(job, document, opened, run)


def _take_in_blocks(job: str, document: dict[str, Any], opened: OpenTrial) -> None:
    found = list(speed_runs(_files(opened, job), job=job))
    if not found:
        raise InvalidEvidenceError(f"{job} completed and left no evidence of any block")
    for name, run in found:
        evidence_document.add_run(document, name, run)


def _take_in_full_run(
    job: str, document: dict[str, Any], opened: OpenTrial, asked: naming.RunId
) -> None:
    run = quality_run(
        _files(opened, job),
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


def _files(opened: OpenTrial, job: str) -> dict[str, bytes]:
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job)
    try:
        return read_tarball(opened.services.store.get(key))
    except NotFoundError:
        return {}


def _take_in_failure(
    outcome: Mapping[str, Any],
    document: dict[str, Any],
    arm: Mapping[str, Any],
    run: naming.RunId,
) -> None:
    job, reason = str(outcome["job"]), str(outcome.get("reason") or "no reason given")
    if run.seed is None:
        blocks = [run["block"] for run in evidence_document.all_runs(document) if "block" in run]
        evidence_document.add_failed_block(document, job, max(blocks, default=-1) + 1, reason)
        return
    order = evidence_document.next_order(document)
    failed = failed_quality_run(job=job, order=order, seed=run.seed, reason=reason)
    evidence_document.add_run(document, arm["name"], failed)


def _charge(document: dict[str, Any], arm: Mapping[str, Any], job: str, services: Services) -> None:
    """Billable seconds are the cluster's wall clock; the arm's price is that of the cluster."""
    try:
        seconds = services.jobs.describe(job).get("BillableTimeInSeconds") or 0
    except NotFoundError:
        seconds = 0
    document["plan"]["spent_usd"] += seconds / 3600 * arm["usd_per_hour"]
