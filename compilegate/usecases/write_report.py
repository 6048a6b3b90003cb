"""Renders the trial's report and leaves it where people find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.notification import command_at
from compilegate.ports import ObjectStore, Services
from compilegate.report import Report, ReportInput, render
from compilegate.usecases.notify_decision import Told, decision_notification, owner_of
from compilegate.usecases.trial import Trial, load_record


def write_report(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Store HTML, Markdown and JSON; returns where, and what the topic is told."""
    trial = Trial.from_event(event)
    report = render_trial(trial, services)
    for extension, body, kind in (
        ("html", report.html, "text/html"),
        ("md", report.markdown, "text/markdown"),
        ("json", report.json, "application/json"),
    ):
        key = naming.report_key(trial.workload, trial.trial, extension)
        services.store.put(key, body.encode(), f"{kind}; charset=utf-8")
    key = naming.report_key(trial.workload, trial.trial, "html")
    place = f"s3://{services.store.bucket}/{key}"
    stage = services.settings.stage
    told = Told(
        subject=report.subject,
        text=f"{report.message}\n\nReport: {place}",
        owner=owner_of(trial, services),
        report=place,
        act=command_at(f"compilegate report {trial.workload} --trial {trial.trial}", stage),
        flag_enabled=event.get("flag_enabled"),
    )
    decision = _maybe(services.store, trial, "decision") or {}
    notification = decision_notification(decision, told, workload=trial.workload, stage=stage)
    return {"report_key": key, **notification.to_answer()}


def render_trial(trial: Trial, services: Services) -> Report:
    """The report of a trial from its kept documents."""
    records: ReportInput = {
        "decision": _maybe(services.store, trial, "decision"),
        "evidence": _maybe(services.store, trial, "evidence"),
        "eligibility": _maybe(services.store, trial, "eligibility"),
        "plan": _maybe(services.store, trial, "plan"),
        "flag": _maybe(services.store, trial, "flag"),
        "context": {
            "stage": services.settings.stage,
            "trial": trial.trial,
            "workload": trial.workload,
            "simulated": services.settings.simulated,
        },
    }
    return render(records)


def _maybe(store: ObjectStore, trial: Trial, document: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = load_record(store, trial, document)
    except NotFoundError:
        return None
    return found
