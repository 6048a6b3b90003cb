"""Puts a trial's records together into its report."""

from __future__ import annotations

from compilegate.report import embed
from compilegate.report.carried import full_runs
from compilegate.report.case import Case, read_case
from compilegate.report.headline import headline
from compilegate.report.markdown import markdown
from compilegate.report.message import message, subject
from compilegate.report.model import Document, Report, ReportInput
from compilegate.report.page import page


def render(document: ReportInput) -> Report:
    """The report of one trial; the same records always give the same bytes.

    Raises ValueError when the records carry neither a decision nor a failure, or a verdict
    outside the closed set; EnvironmentNotReadyError when plotly.js is not to be found.
    """
    case = read_case(document)
    summary = _summary(case)
    return Report(
        html=page(case, summary),
        markdown=markdown(case),
        json=embed.stable_json(summary) + "\n",
        subject=subject(case),
        message=message(case),
    )


def _summary(case: Case) -> Document:
    return {
        "schema": 1,
        "workload": case.workload,
        "headline": headline(case),
        "full_runs": full_runs(case),
        "context": dict(case.source["context"]),
        "decision": case.source["decision"],
    }
