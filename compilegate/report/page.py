"""The HTML page."""

from __future__ import annotations

from compilegate.domain.reasons import with_fix
from compilegate.report import embed, words
from compilegate.report.canary_runs import canary_table
from compilegate.report.charts import charts
from compilegate.report.controls import control_sentences
from compilegate.report.evidence_tables import (
    blocks_table,
    failures_table,
    fingerprint_table,
    runs_table,
)
from compilegate.report.headline import headline
from compilegate.report.html import Download, render_page
from compilegate.report.metric_cards import metric_cards
from compilegate.report.model import Document
from compilegate.report.protocol import plan_table, protocol
from compilegate.report.recommendations import recommendations
from compilegate.report.tables import Table, arms_table, eligibility_table  # fmt: skip
from compilegate.report.trial_report import TrialReport

# An evidence document beyond this is linked by its place in the bucket, not carried along.
EMBEDDED_EVIDENCE_MAX = 4_000_000


def page(trial: TrialReport, summary: Document) -> str:
    """The page of one trial; ``summary`` is the report's own JSON."""
    context = trial.source["context"]
    drawn = charts(trial.decision, trial.source["evidence"], trial.measured)
    values = {
        "workload": trial.workload,
        "trial": context["trial"],
        "stage": context["stage"],
        "simulated": context.get("simulated"),
        "label": words.label(trial).text,
        "tone": words.label(trial).tone,
        "headline": headline(trial),
        "lede": words.lede(trial),
        "reasons": [
            {"code": reason.code, "message": with_fix(reason.message, reason.fix)}
            for reason in trial.reasons
        ],
        "controls": control_sentences(trial.decision),
        "metric_cards": metric_cards(trial),
        "not_measured": trial.measured if isinstance(trial.measured, str) else None,
        "changes": recommendations(trial),
        "arms": arms_table(trial),
        "eligibility": eligibility_table(trial),
        "eligibility_verdict": trial.eligibility.get("verdict"),
        "protocol": protocol(trial),
        "details": _details(trial),
        "downloads": _downloads(trial, summary),
    }
    return render_page("report.html.j2", drawn, values)


def _details(trial: TrialReport) -> list[Table]:
    found = [plan_table(trial)]
    if not isinstance(trial.measured, str):
        measured = trial.measured
        found += [
            fingerprint_table(measured), blocks_table(measured), runs_table(measured),
            canary_table(trial), failures_table(measured),
        ]  # fmt: skip
    return [table for table in found if table is not None]


def _downloads(trial: TrialReport, summary: Document) -> list[Download]:
    stem = f"{trial.workload}-{trial.source['context']['trial']}"
    decision = embed.stable_json(summary)
    found = [Download.of_text("Decision and context", f"{stem}-report.json", decision)]
    evidence = trial.source["evidence"]
    text = "" if evidence is None else embed.stable_json(evidence, indent=None)
    if text and len(text) <= EMBEDDED_EVIDENCE_MAX:
        name = "Evidence, to judge it again"
        found.append(Download.of_text(name, f"{stem}-evidence.json", text))
    return found
