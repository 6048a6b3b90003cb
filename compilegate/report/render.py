"""One trial's report: the page, a pull request comment, JSON, and the notification's text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.claims import SUBJECT_MAX, command_at, subject_line, verdict_label
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.formats import UNKNOWN, ascii_only
from compilegate.domain.naming import record_key, report_key
from compilegate.domain.reasons import with_fix
from compilegate.report import statements
from compilegate.report.charts.figure import Chart
from compilegate.report.charts.quality import loss_chart, quality_chart
from compilegate.report.charts.speed import cost_chart, speedup_chart, throughput_chart, trace_chart
from compilegate.report.markup import (
    Download,
    Page,
    lines,
    markdown,
    paragraph,
    render_page,
    stable_json,
)
from compilegate.report.tables import (
    SAME_QUALITY,
    arms_table,
    detail_tables,
    earlier_table,
    eligibility_table,
    facts,
    full_runs,
    next_command,
    places,
    protocol,
    runs_csv,
    times_table,
)
from compilegate.report.trial_report import Document, TrialReport
from compilegate.report.words import (
    JUDGED_CARDS,
    MetricCard,
    control_sentences,
    figures_of,
    headline,
    label,
    lede,
    metric_cards,
    recommendations,
)

MARKDOWN_ROWS = {
    "Samples per second, short blocks", "Steady step, short blocks", "Compile time, warm cache",
    "Recompilations", "Peak memory", "Cluster", "Price of 1,000 samples",
    "Price of a production run", "Full runs", "Failed runs", SAME_QUALITY,
}  # fmt: skip


@dataclass(frozen=True)
class Report(Page):
    """``subject`` is ASCII of less than 100 characters (SNS).

    ``decision`` is what it reports, None for a trial that failed.
    """

    subject: str
    message: str
    decision: Decision | None


def render(trial: TrialReport) -> Report:
    """The report of one trial; the same records always give the same bytes."""
    cards = metric_cards(trial)
    summary = stable_json({
        "schema": 1,
        "workload": trial.workload,
        "headline": headline(trial),
        "claims": trial.claims.to_dict(),
        "reasons": [reason.as_document() for reason in trial.reasons],
        "full_runs": full_runs(trial),
        **({"where_time_goes": trial.times.to_dict()} if trial.times else {}),
        **{note.code: dict(note.values) for note in trial.notes},
        "context": {**trial.source["context"], "simulated": trial.simulated},
        "decision": trial.source["decision"],
    })  # fmt: skip
    values = _values(trial, cards, summary)
    kept = {*MARKDOWN_ROWS, f"Mean of {trial.metric}"}
    return Report(
        html=render_page("report.html.j2", charts(trial), values),
        markdown=markdown("report", **values, kept=kept, figures=figures_of(cards)),
        json=summary + "\n",
        subject=subject_text(trial),
        message=message_text(trial, cards),
        decision=trial.decision,
    )


def charts(trial: TrialReport) -> list[Chart]:
    """Every chart of the page in reading order; empty where nothing was measured."""
    measured = trial.measured
    if measured is None or not measured.has_speed:
        return []
    return [
        throughput_chart(trial, measured),
        speedup_chart(trial, measured),
        loss_chart(measured),
        quality_chart(trial, measured),
        trace_chart(measured),
        cost_chart(trial),
    ]


def _values(trial: TrialReport, cards: Sequence[MetricCard], summary: str) -> dict[str, Any]:
    """What the page and the comment show."""
    context = trial.source["context"]
    eligible = trial.eligibility.get("verdict")
    return {
        "workload": trial.workload,
        "trial": context["trial"],
        "stage": context["stage"],
        "simulated": trial.simulated,
        "as_of": context.get("as_of"),
        "label": label(trial).text,
        "tone": label(trial).tone,
        "headline": headline(trial),
        "lede": lede(trial),
        "reasons": _reasons(trial),
        "controls": control_sentences(trial.judged.controls),
        "metric_cards": cards,
        "not_measured": trial.not_measured,
        "changes": recommendations(trial),
        "facts": facts(trial),
        "next": next_command(trial),
        "places": places(trial),
        "earlier": earlier_table(trial),
        "arms": arms_table(trial),
        "times": times_table(trial),
        "eligibility": eligibility_table(trial),
        "eligibility_verdict": eligible and verdict_label(str(eligible)).text.lower(),
        "protocol": protocol(trial),
        "details": detail_tables(trial),
        "downloads": _downloads(trial, summary),
    }


def _reasons(trial: TrialReport) -> list[dict[str, str]]:
    return [
        {"code": reason.code, "message": with_fix(reason.message, reason.fix)}
        for reason in trial.reasons
    ]


def _downloads(trial: TrialReport, summary: str) -> list[Download]:
    workload, name = trial.workload, trial.source["context"]["trial"]
    stem, key = f"{workload}-{name}", report_key(workload, name, "json")
    downloads = [Download.of("Decision and context", f"{stem}-report.json", summary, place=key)]
    evidence: Document | None = trial.source["evidence"]
    if evidence is not None:
        text, key = stable_json(evidence, indent=None), record_key(workload, name, "evidence")
        about = "Evidence, to judge it again"
        downloads.append(Download.of(about, f"{stem}-evidence.json", text, place=key))
    if runs := runs_csv(trial):
        key = record_key(workload, name, "evidence")
        downloads.append(Download.of("Every run", f"{stem}-runs.csv", runs, place=key))
    return downloads


def subject_text(trial: TrialReport) -> str:
    """ASCII, one line, less than 100 characters (SNS): workload, verdict and its reason."""
    opening = subject_line(trial.source["context"]["stage"], f"{trial.workload}: ")
    subject = ascii_only(opening + headline(trial))
    if len(subject) > SUBJECT_MAX:
        subject = ascii_only(opening + headline(trial, brief=True))
    if len(subject) > SUBJECT_MAX:
        subject = subject[: SUBJECT_MAX - 3].rstrip(" ,.:;(") + "..."
    return subject


def _figures(trial: TrialReport, cards: Sequence[MetricCard]) -> list[str]:
    """The key figures that are known: speed, quality and saving with their intervals."""
    judged = trial.verdict is not Verdict.INELIGIBLE
    stated = statements.key_figures(trial.metric, trial.judged, trial.claims) if judged else []
    others = cards[JUDGED_CARDS:] if judged else cards
    rest = ", ".join(f"{card.name}: {card.value}" for card in others if card.value != UNKNOWN)
    return [*stated, rest] if rest else stated


def message_text(trial: TrialReport, cards: Sequence[MetricCard]) -> str:
    """What was decided, the figures, what happened to the flag, and how to see the report."""
    context = trial.source["context"]
    report = f"compilegate report {trial.workload} --trial {context['trial']}"
    text = lines(
        "message", trial=trial, headline=headline(trial), lede=lede(trial),
        reasons=_reasons(trial), figures=_figures(trial, cards),
        flag=paragraph("flag", trial=trial), simulated=trial.simulated,
        place=context.get("place"), command=command_at(report, context["stage"]),
    )  # fmt: skip
    return "\n".join(text) + "\n"
