"""What the TRAIN machine is told to do next, and what people are told."""

from __future__ import annotations

from typing import Any

from compilegate.domain.notification import Notification
from compilegate.domain.production.begun import Attempt
from compilegate.domain.production.ending import Ending
from compilegate.domain.production.runs import ProductionRun
from compilegate.domain.workload.model import BASELINE
from compilegate.ports import Services
from compilegate.usecases.production.ended import Ended
from compilegate.usecases.production.recording import NOT_RUN
from compilegate.usecases.production.wait_for_capacity import Waiting

WATCH, RERUN, WAIT, FAILED, END = "watch", "rerun", "wait", "failed", "end"


def what_next(run: ProductionRun) -> str:
    """What follows a run that has been recorded.

    A candidate that failed is made again on the baseline: its failure is evidence, and the model
    is wanted all the same. What a person stopped stays stopped.
    """
    if run.status == NOT_RUN:
        return FAILED
    if run.details.get("ending") == Ending.STOPPED:
        return END
    untreated = run.arm != BASELINE and run.result.get("applied") is False
    # Without evidence nothing is known of the run, but its model is there.
    if run.status == "Completed" and run.result.get("finished") is not False and not untreated:
        return WATCH
    return FAILED if run.arm == BASELINE else RERUN


def answer(run: ProductionRun, ended: Ended, services: Services) -> dict[str, Any]:
    """The answer for an attempt that was recorded."""
    step = what_next(run)
    following = Attempt(ended.attempt.number + 1, rerun=True) if step == RERUN else ended.attempt
    told = _failed(run, ended, services) if step == FAILED else None
    return {
        **_common(step, run),
        "attempt": following.to_dict(),
        "wait_seconds": 0,
        "owner": ended.spec.workload.owner,
        "tell": told,
    }


def answer_waiting(waiting: Waiting, ended: Ended, services: Services) -> dict[str, Any]:
    """The answer for an attempt that found no capacity."""
    return {
        "next": WAIT,
        "run": ended.begun.run,
        "arm": ended.arm,
        "status": "Waiting",
        "reason": waiting.reason,
        "counts": False,
        "attempt": waiting.attempt.to_dict(),
        "wait_seconds": waiting.seconds,
        "owner": ended.spec.workload.owner,
        "tell": _waiting(waiting, ended, services) if waiting.first else None,
    }


def answer_without(
    step: str, run: ProductionRun | None, reason: str | None, owner: str | None = None
) -> dict[str, Any]:
    """The answer for a job that no attempt of this machine started."""
    known = _common(step, run) if run is not None else {"next": step, "run": None, "arm": None}
    return {
        "status": "Ignored",
        "counts": False,
        **known,
        "reason": reason or (run.reason if run else None),
        "attempt": Attempt().to_dict(),
        "wait_seconds": 0,
        "owner": owner,
        "tell": None,
    }


def _common(step: str, run: ProductionRun) -> dict[str, Any]:
    return {
        "next": step,
        "run": run.run,
        "arm": run.arm,
        "status": run.status,
        "reason": run.reason,
        "counts": run.counts,
    }


def _failed(run: ProductionRun, ended: Ended, services: Services) -> dict[str, Any]:
    what = "was not run" if run.status == NOT_RUN else "failed"
    text = (
        f"Production run {run.run} of {ended.workload} {what}, so there is no new model.\n\n"
        f"arm: {run.arm} ({run.why})\njob: {run.job}\nreason: {run.reason or 'none was given'}\n\n"
        "It is in the ledger. The schedule goes on; to run it again now: "
        f"compilegate train {ended.workload}\n"
    )
    return _notification("failed", f"production run {what}", text, ended, services)


def _waiting(waiting: Waiting, ended: Ended, services: Services) -> dict[str, Any]:
    text = (
        f"Production run {ended.begun.run} of {ended.workload} waits for machines.\n\n"
        f"arm: {ended.arm}\nreason: {waiting.reason}\n\n"
        f"It tries again in {waiting.seconds} seconds, then at longer intervals. You hear of it "
        "again only if it gives up.\n"
    )
    return _notification("waiting", "production waits for machines", text, ended, services)


def _notification(
    kind: str, subject: str, text: str, ended: Ended, services: Services
) -> dict[str, Any]:
    return Notification(
        kind=kind,
        stage=services.settings.stage,
        subject=f"[compilegate] {ended.workload}: {subject}",
        text=text,
        workload=ended.workload,
        owner=ended.spec.workload.owner,
        figures={"run": ended.begun.run, "job": ended.job, "arm": ended.arm},
        act=f"compilegate status {ended.workload}",
    ).to_answer()
