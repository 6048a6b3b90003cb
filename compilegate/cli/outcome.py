"""How a trial ended, and where its report is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate.adapters.executions import ExecutionState
from compilegate.cli.cloud import Cloud
from compilegate.domain import naming
from compilegate.domain.decision import EXIT_CODES, Verdict
from compilegate.domain.errors import NotFoundError
from compilegate.domain.failures import explain
from compilegate.ports import Services
from compilegate.usecases.trial import Trial, load_record
from compilegate.usecases.write_report import render_trial

EXTENSIONS = ("html", "md", "json")
FAILURE = 1


@dataclass(frozen=True)
class Outcome:
    """One trial's end; ``decision`` is None when it failed, ``failure`` then says why."""

    workload: str
    trial: str
    decision: Mapping[str, Any] | None
    headline: str
    failure: str | None
    report: Path | None

    @property
    def verdict(self) -> str:
        """The decision's verdict, else ``failed``."""
        return "failed" if self.decision is None else str(self.decision["verdict"])

    @property
    def exit_code(self) -> int:
        """The contract's exit code."""
        return FAILURE if self.decision is None else EXIT_CODES[Verdict(self.verdict)]

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "workload": self.workload,
            "trial": self.trial,
            "verdict": self.verdict,
            "headline": self.headline,
            "failure": self.failure,
            "report": None if self.report is None else str(self.report),
            "decision": self.decision,
        }


def read_outcome(trial: Trial, cloud: Cloud, state: ExecutionState, reports: Path) -> Outcome:
    """The end of a trial whose execution has ended; its report is saved under ``reports``."""
    services = cloud.services
    failure = None if state.status == "SUCCEEDED" else _failure(trial, services, state)
    decision = _decision(trial, services) if failure is None else None
    if failure is None and decision is None:
        failure = "the execution ended without a decision"
    folder = None if decision is None else save_report(trial, services, reports)
    headline = failure or _headline(folder, decision)
    return Outcome(trial.workload, trial.trial, decision, headline, failure, folder)


def save_report(trial: Trial, services: Services, reports: Path) -> Path:
    """Fetch a trial's report, rendered again where the cloud no longer has it.

    Returns the HTML file. Raises NotFoundError when the trial left no decision.
    """
    folder = reports / f"{trial.workload}-{trial.trial}"
    bodies = _stored_report(trial, services) or _rendered_report(trial, services)
    folder.mkdir(parents=True, exist_ok=True)
    for extension, body in bodies.items():
        (folder / f"report.{extension}").write_bytes(body)
    return folder / "report.html"


def worst_exit_code(codes: Sequence[int]) -> int:
    """One exit code for several: a failure, bad input, else the highest."""
    return next((code for code in (1, 2) if code in codes), max(codes, default=0))


def _stored_report(trial: Trial, services: Services) -> dict[str, bytes] | None:
    try:
        return {
            extension: services.store.get(naming.report_key(trial.workload, trial.trial, extension))
            for extension in EXTENSIONS
        }
    except NotFoundError:
        return None


def _rendered_report(trial: Trial, services: Services) -> dict[str, bytes]:
    try:
        report = render_trial(trial, services)
    except ValueError as error:
        raise NotFoundError(
            f"trial {trial.trial} of {trial.workload} left no decision, so there is no report"
        ) from error
    bodies = (report.html, report.markdown, report.json)
    return {name: body.encode() for name, body in zip(EXTENSIONS, bodies, strict=True)}


def _decision(trial: Trial, services: Services) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = load_record(services.store, trial, "decision")
    except NotFoundError:
        return None
    return found


def _failure(trial: Trial, services: Services, state: ExecutionState) -> str:
    """The ledger's reason, else what Step Functions says itself."""
    for entry in services.ledger.entries(trial.workload):
        if entry.get("kind") == "failed" and entry.get("trial") == trial.trial:
            return str(entry["reason"])
    return explain(state.error or state.status, state.cause)


def _headline(report: Path | None, decision: Mapping[str, Any] | None) -> str:
    if report is not None:
        document = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
        return str(document["headline"])
    reasons = (decision or {}).get("reasons") or [{"message": "no reason was recorded"}]
    return str(reasons[0]["message"])
