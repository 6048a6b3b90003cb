"""The HTML page."""

from __future__ import annotations

from compilegate.report import embed, words
from compilegate.report.carried import carried_table
from compilegate.report.case import Case
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
from compilegate.report.model import Document
from compilegate.report.protocol import plan_table, protocol
from compilegate.report.settle import what_would_change
from compilegate.report.tables import Table, arms_table, eligibility_table  # fmt: skip
from compilegate.report.tiles import tiles

# An evidence document beyond this is linked by its place in the bucket, not carried along.
EMBEDDED_EVIDENCE_MAX = 4_000_000


def page(case: Case, summary: Document) -> str:
    """The page of one trial; ``summary`` is the report's own JSON."""
    context = case.source["context"]
    drawn = charts(case.decision, case.source["evidence"], case.measured)
    values = {
        "workload": case.workload,
        "trial": context["trial"],
        "stage": context["stage"],
        "simulated": context.get("simulated"),
        "label": words.label(case),
        "tone": words.tone(case),
        "headline": headline(case),
        "lede": words.lede(case),
        "reasons": case.reasons,
        "controls": control_sentences(case.decision),
        "tiles": tiles(case),
        "not_measured": case.measured if isinstance(case.measured, str) else None,
        "changes": what_would_change(case),
        "arms": arms_table(case),
        "eligibility": eligibility_table(case),
        "eligibility_verdict": case.eligibility.get("verdict"),
        "protocol": protocol(case),
        "details": _details(case),
        "downloads": _downloads(case, summary),
    }
    return render_page("report.html.j2", drawn, values)


def _details(case: Case) -> list[Table]:
    found = [plan_table(case)]
    if not isinstance(case.measured, str):
        measured = case.measured
        found += [
            fingerprint_table(measured), blocks_table(measured), runs_table(measured),
            carried_table(case), failures_table(measured),
        ]  # fmt: skip
    return [table for table in found if table is not None]


def _downloads(case: Case, summary: Document) -> list[Download]:
    stem = f"{case.workload}-{case.source['context']['trial']}"
    decision = embed.stable_json(summary)
    found = [Download.of_text("Decision and context", f"{stem}-report.json", decision)]
    evidence = case.source["evidence"]
    text = "" if evidence is None else embed.stable_json(evidence, indent=None)
    if text and len(text) <= EMBEDDED_EVIDENCE_MAX:
        name = "Evidence, to judge it again"
        found.append(Download.of_text(name, f"{stem}-evidence.json", text))
    return found
