"""Takes the outcome of one job into the evidence document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.speed_jobs import measured_by
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases import evidence_document
from compilegate.usecases.collect import failed_quality_run, quality_run, speed_runs
from compilegate.usecases.control_jobs import controls_of_run, take_in_control
from compilegate.usecases.job_limits import stopped_by_budget
from compilegate.usecases.job_output import JobOutput, read_output
from compilegate.usecases.outcome import COMPLETED, is_result
from compilegate.usecases.round_requests import measured_arms
from compilegate.usecases.trial import OpenTrial


def take_in_round(
    outcomes: Sequence[Mapping[str, Any]], document: dict[str, Any], opened: OpenTrial
) -> None:
    """Add the runs of a round's jobs; repeating it adds nothing.

    Raises InvalidEvidenceError, never for a control. Controls come last: theirs is compared.
    """
    runs = [(naming.parse_run(str(outcome["run"])), outcome) for outcome in outcomes]
    controls = [bool(controls_of_run(run, opened.plan)) for run, _ in runs]
    for wanted in (False, True):
        for (run, outcome), is_control in zip(runs, controls, strict=True):
            if is_control is wanted and not _is_known(outcome, document):
                take_in = _take_in_control if is_control else _take_in
                take_in(outcome, document, opened, run)


def _is_known(outcome: Mapping[str, Any], document: dict[str, Any]) -> bool:
    return any(run["job"] == outcome["job"] for run in evidence_document.all_runs(document))


def _take_in(
    outcome: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial, run: naming.RunId
) -> None:
    job = str(outcome["job"])
    if not is_result(outcome) or stopped_by_budget(outcome, opened):
        return  # where the judge still needs the run, it asks for it again
    if outcome["status"] != COMPLETED:
        _take_in_failure(outcome, document, opened, run)
    elif run.is_speed:
        _take_in_blocks(job, document, opened, run)
    else:
        _take_in_full_run(job, document, opened, run)


def _take_in_blocks(
    job: str, document: dict[str, Any], opened: OpenTrial, asked: naming.RunId
) -> None:
    for name, run in _own_segments(job, opened, asked):
        evidence_document.add_run(document, name, run)


def _take_in_control(
    outcome: Mapping[str, Any], document: dict[str, Any], opened: OpenTrial, asked: naming.RunId
) -> None:
    names, block = measured_arms(opened, asked.text), asked.block or 0
    job = str(outcome["job"])
    take_in_control(outcome, document, block, names, lambda: _own_segments(job, opened, asked))


def _own_segments(
    job: str, opened: OpenTrial, asked: naming.RunId
) -> list[tuple[str, dict[str, Any]]]:
    """(arm, run) of every segment; raises InvalidEvidenceError for those of another job."""
    found = list(speed_runs(_output(opened, job), job=job))
    if not found:
        raise InvalidEvidenceError(f"{job} completed and left no evidence of any block")
    arms = [ArmPlan.from_dict(arm) for arm in opened.plan["arms"]]
    names = measured_by(asked, arms) or [arm.name for arm in arms]
    for name, run in found:
        if name not in names or asked.block not in (None, run["block"]):
            raise InvalidEvidenceError(
                f"{job} left evidence of {name} in block {run['block']}, which is not its own"
            )
    return found


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
    store = opened.services.store
    key = naming.job_output_key(opened.trial.workload, opened.trial.trial, job)
    try:
        found = store.fetch(f"s3://{store.bucket}/{key}")
    except NotFoundError:
        return JobOutput()
    return read_output(found.stream, found.size)


def _take_in_failure(
    outcome: Mapping[str, Any],
    document: dict[str, Any],
    opened: OpenTrial,
    asked: naming.RunId,
) -> None:
    job, reason = str(outcome["job"]), str(outcome.get("reason") or "no reason given")
    if asked.arm_index is None or asked.seed is None:
        _take_in_failed_blocks(document, opened, asked, job=job, reason=reason)
        return
    order = evidence_document.next_order(document)
    run = failed_quality_run(job=job, order=order, seed=asked.seed, reason=reason)
    evidence_document.add_run(document, opened.plan["arms"][asked.arm_index]["name"], run)


def _take_in_failed_blocks(
    document: dict[str, Any], opened: OpenTrial, asked: naming.RunId, *, job: str, reason: str
) -> None:
    """Without its baseline a block has nothing to compare with; other arms fail for themselves."""
    if asked.block is None:
        blocks = [run["block"] for run in evidence_document.all_runs(document) if "block" in run]
        evidence_document.add_failed_block(document, job, max(blocks, default=-1) + 1, reason)
        return
    failed = [BASELINE] if asked.group == 0 else measured_arms(opened, asked.text)
    for arm in failed:
        evidence_document.add_failed_block(document, job, asked.block, reason, arm)
