"""Renders the trial's report and leaves it where people find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.notification import command_at
from compilegate.ports import Services
from compilegate.report.notifications.decision import decision_notification
from compilegate.report.render import Report, render
from compilegate.report.trial_report import ReportInput
from compilegate.usecases.records import Trial, find_record, load_decision
from compilegate.usecases.registered import owner_of


def write_report(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Store HTML, Markdown and JSON; returns where, and the notification."""
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
    notification = decision_notification(
        load_decision(services.store, trial.record_key("decision")),
        stage=stage,
        workload=trial.workload,
        subject=report.subject,
        text=f"{report.message}\n\nReport: {place}",
        owner=owner_of(trial, services.store),
        report=place,
        act=command_at(f"compilegate report {trial.workload} --trial {trial.trial}", stage),
        flag_enabled=event.get("flag_enabled"),
    )
    return {"report_key": key, **notification.to_answer()}


def render_trial(trial: Trial, services: Services) -> Report:
    """The report of a trial from its kept documents."""
    records: ReportInput = {
        "decision": find_record(services.store, trial, "decision"),
        "evidence": find_record(services.store, trial, "evidence"),
        "eligibility": find_record(services.store, trial, "eligibility"),
        "plan": find_record(services.store, trial, "plan"),
        "flag": find_record(services.store, trial, "flag"),
        "context": {
            "stage": services.settings.stage,
            "trial": trial.trial,
            "workload": trial.workload,
            "simulated": services.settings.simulated,
        },
    }
    return render(records)
