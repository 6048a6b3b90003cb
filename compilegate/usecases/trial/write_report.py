"""Renders the trial's report and leaves it where people find it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.claims import command_at, decision_notification
from compilegate.ports import Services
from compilegate.report.render import Report, render
from compilegate.report.trial_report import TrialReport
from compilegate.usecases import records
from compilegate.usecases.registered import owner_of
from compilegate.usecases.reports import read_trial_report

MOST_EARLIER = 8


def write_report(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Store HTML, Markdown and JSON; returns where, and the notification."""
    trial = records.Trial.from_event(event)
    report = render_trial(trial, services)
    texts = {"html": report.html, "md": report.markdown, "json": report.json}
    key_of = partial(naming.report_key, trial.workload, trial.trial)
    place, link = records.save_pages(texts, key_of, services)
    stage = services.settings.stage
    notification = decision_notification(
        report.decision,
        stage=stage,
        workload=trial.workload,
        subject=report.subject,
        text=f"{report.message}\n\nReport: {link or place}",
        owner=owner_of(trial, services.store),
        report=place,
        link=link,
        act=command_at(f"compilegate report {trial.workload} --trial {trial.trial}", stage),
        flag_enabled=event.get("flag_enabled"),
    )
    return {"report_key": key_of("html"), **notification.to_answer()}


def render_trial(trial: records.Trial, services: Services) -> Report:
    """The report of a trial from its kept documents."""
    return render(trial_report(trial, services))


def trial_report(trial: records.Trial, services: Services) -> TrialReport:
    """What the kept documents of a trial say; raises ValueError where none says how it ended."""
    store, plan = services.store, records.find_plan(services.store, trial)
    # The latest trials of the workload before this one; their ids sort by time.
    names = store.folders(f"{naming.DECISIONS_PREFIX}{trial.workload}/")
    before = sorted((name for name in names if name < trial.trial), reverse=True)[:MOST_EARLIER]
    keys = {name: records.Trial(trial.workload, name, "").record_key("decision") for name in before}
    return read_trial_report({
        "decision": records.find_record(store, trial, "decision"),
        "evidence": records.find_record(store, trial, "evidence"),
        "eligibility": records.find_record(store, trial, "eligibility"),
        "plan": plan,
        "flag": records.find_flag_outcome(store, trial),
        "earlier": [(name, records.find_decision(store, key)) for name, key in keys.items()],
        "context": {
            **records.report_context(trial.workload, trial.trial, services),
            "owner": owner_of(records.of_plan(trial, plan), store),
        },
    })  # fmt: skip
