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
from compilegate.report import markup, statements, tables, words
from compilegate.report.charts.figure import Chart
from compilegate.report.charts.quality import loss_chart, quality_chart
from compilegate.report.charts.speed import cost_chart, speedup_chart, throughput_chart, trace_chart
from compilegate.report.trial_report import Document, TrialReport

MARKDOWN_ROWS = {
    "Samples per second, short blocks", "Steady step, short blocks", "Compile time, warm cache",
    "Recompilations", "Peak memory", "Cluster", "Price of 1,000 samples",
    "Price of a production run", "Full runs", "Failed runs", tables.SAME_QUALITY,
}  # fmt: skip


@dataclass(frozen=True)
class Report(markup.Page):
    """``subject`` is ASCII of less than 100 characters (SNS).

    ``decision`` is what it reports, None for a trial that failed.
    """

    subject: str
    message: str
    decision: Decision | None


def render(trial: TrialReport) -> Report:
    """The report of one trial; the same records always give the same bytes."""
    cards = words.metric_cards(trial)
    summary = markup.stable_json({
        "schema": 1,
        "workload": trial.workload,
        "headline": words.headline(trial),
        "claims": trial.claims.to_dict(),
        "reasons": [reason.as_document() for reason in trial.reasons],
        "full_runs": tables.full_runs(trial),
        **({"where_time_goes": trial.times.to_dict()} if trial.times else {}),
        **{note.code: dict(note.values) for note in trial.notes},
        "context": {**trial.source["context"], "simulated": trial.simulated},
        "decision": trial.source["decision"],
    })  # fmt: skip
    values = _values(trial, cards, summary)
    kept = {*MARKDOWN_ROWS, f"Mean of {trial.metric}"}
    return Report(
        html=markup.render_page("report.html.j2", charts(trial), values),
        markdown=markup.markdown("report", **values, kept=kept, figures=words.figures_of(cards)),
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


def _values(trial: TrialReport, cards: Sequence[words.MetricCard], summary: str) -> dict[str, Any]:
    """What the page and the comment show."""
    context = trial.source["context"]
    return {
        "workload": trial.workload,
        "trial": context["trial"],
        "stage": context["stage"],
        "simulated": trial.simulated,
        "as_of": context.get("as_of"),
        "label": words.label(trial).text,
        "tone": words.label(trial).tone,
        "headline": words.headline(trial),
        "lede": words.lede(trial),
        "reasons": _reasons(trial),
        "controls": words.control_sentences(trial.judged.controls),
        "metric_cards": cards,
        "not_measured": trial.not_measured,
        "changes": words.recommendations(trial),
        "facts": tables.facts(trial),
        "next": tables.next_command(trial),
        "places": tables.places(trial),
        "earlier": tables.earlier_table(trial),
        "arms": tables.arms_table(trial),
        "times": tables.times_table(trial),
        "eligibility": tables.eligibility_table(trial),
        "eligibility_verdict": verdict_label(str(trial.eligibility.get("verdict"))).text.lower(),
        "protocol": tables.protocol(trial),
        "details": tables.detail_tables(trial),
        "downloads": _downloads(trial, summary),
    }


def _reasons(trial: TrialReport) -> list[dict[str, str]]:
    return [
        {"code": reason.code, "message": with_fix(reason.message, reason.fix)}
        for reason in trial.reasons
    ]


def _downloads(trial: TrialReport, summary: str) -> list[markup.Download]:
    workload, name = trial.workload, trial.source["context"]["trial"]
    stem, key = f"{workload}-{name}", report_key(workload, name, "json")
    downloads = [
        markup.Download.of("Decision and context", f"{stem}-report.json", summary, place=key)
    ]
    evidence: Document | None = trial.source["evidence"]
    if evidence is not None:
        text, key = (
            markup.stable_json(evidence, indent=None),
            record_key(workload, name, "evidence"),
        )
        about = "Evidence, to judge it again"
        downloads.append(markup.Download.of(about, f"{stem}-evidence.json", text, place=key))
    if runs := tables.runs_csv(trial):
        key = record_key(workload, name, "evidence")
        downloads.append(markup.Download.of("Every run", f"{stem}-runs.csv", runs, place=key))
    return downloads


def subject_text(trial: TrialReport) -> str:
    """ASCII, one line, less than 100 characters (SNS): workload, verdict and its reason."""
    opening = subject_line(trial.source["context"]["stage"], f"{trial.workload}: ")
    subject = ascii_only(opening + words.headline(trial))
    if len(subject) > SUBJECT_MAX:
        subject = ascii_only(opening + words.headline(trial, brief=True))
    if len(subject) > SUBJECT_MAX:
        subject = subject[: SUBJECT_MAX - 3].rstrip(" ,.:;(") + "..."
    return subject


def _figures(trial: TrialReport, cards: Sequence[words.MetricCard]) -> list[str]:
    """The key figures that are known: speed, quality and saving with their intervals."""
    stated = statements.key_figures(trial.metric, trial.judged, trial.claims)
    judged = trial.verdict is not Verdict.INELIGIBLE
    others = cards[words.JUDGED_CARDS :] if judged else cards
    rest = ", ".join(f"{card.name}: {card.value}" for card in others if card.value != UNKNOWN)
    return [*stated, rest] if rest else stated


def message_text(trial: TrialReport, cards: Sequence[words.MetricCard]) -> str:
    """What was decided, the figures, what happened to the flag, and how to see the report."""
    context = trial.source["context"]
    report = f"compilegate report {trial.workload} --trial {context['trial']}"
    text = markup.lines(
        "message", trial=trial, headline=words.headline(trial), lede=words.lede(trial),
        reasons=_reasons(trial), figures=_figures(trial, cards),
        flag=markup.paragraph("flag", trial=trial), simulated=trial.simulated,
        place=context.get("place"), command=command_at(report, context["stage"]),
    )  # fmt: skip
    return "\n".join(text) + "\n"
