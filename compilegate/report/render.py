"""Puts a trial's records together into its report."""

from __future__ import annotations

from compilegate.report import embed
from compilegate.report.canary_runs import full_runs
from compilegate.report.headline import headline
from compilegate.report.markdown import markdown
from compilegate.report.model import Document, Report, ReportInput
from compilegate.report.notifications.trial import message, subject
from compilegate.report.page import page
from compilegate.report.trial_report import TrialReport, read_trial_report


def render(document: ReportInput) -> Report:
    """The report of one trial; the same records always give the same bytes.

    Raises ValueError when the records carry neither a decision nor a failure, or a verdict
    outside the closed set; EnvironmentNotReadyError when plotly.js is not to be found.
    """
    trial = read_trial_report(document)
    summary = _summary(trial)
    return Report(
        html=page(trial, summary),
        markdown=markdown(trial),
        json=embed.stable_json(summary) + "\n",
        subject=subject(trial),
        message=message(trial),
    )


def _summary(trial: TrialReport) -> Document:
    return {
        "schema": 1,
        "workload": trial.workload,
        "headline": headline(trial),
        "full_runs": full_runs(trial),
        "context": dict(trial.source["context"]),
        "decision": trial.source["decision"],
    }
