"""One trial's report: the page, a pull request comment, JSON, and the notification's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.claims import SUBJECT_MAX, command_at, subject_line, verdict_label
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.escaping import escape_markdown
from compilegate.domain.formats import UNKNOWN, ascii_only
from compilegate.domain.naming import record_key, report_key
from compilegate.domain.notes import said
from compilegate.domain.reasons import with_fix
from compilegate.report import statements
from compilegate.report.background import (
    earlier_table,
    facts,
    full_runs,
    jobs_table,
    next_command,
    places,
    protocol,
    runs_csv,
)
from compilegate.report.charts import charts
from compilegate.report.markup import TONE_MARKS, Download, markdown_table, render_page, stable_json
from compilegate.report.measured import Document
from compilegate.report.metric_cards import JUDGED_CARDS, MetricCard, metric_cards
from compilegate.report.recommendations import recommendations
from compilegate.report.tables import SAME_QUALITY, arms_table, detail_tables, eligibility_table
from compilegate.report.trial_report import ReportInput, TrialReport, read_trial_report
from compilegate.report.words import (
    control_sentences,
    flag_sentence,
    headline,
    label,
    lede,
)

MARKDOWN_ROWS = {
    "Samples per second, short blocks", "Median step, short blocks", "Compile time, warm cache",
    "Recompilations", "Peak memory", "Cluster", "Price of 1,000 samples",
    "Price of a production run", "Full runs", "Failed runs", SAME_QUALITY,
}  # fmt: skip
MOST_CHANGES, MOST_REASONS = 3, 4


@dataclass(frozen=True)
class Report:
    """``html`` needs no other file; ``subject`` is ASCII of less than 100 characters (SNS).

    ``decision`` is what it reports, None for a trial that failed.
    """

    html: str
    markdown: str
    json: str
    subject: str
    message: str
    decision: Decision | None


def render(document: ReportInput) -> Report:
    """The report of one trial; the same records always give the same bytes.

    Raises ValueError when the records have neither a decision nor a failure, or a verdict
    outside the closed set.
    """
    trial = read_trial_report(document)
    cards, changes = metric_cards(trial), recommendations(trial)
    summary = stable_json({
        "schema": 1,
        "workload": trial.workload,
        "headline": headline(trial),
        "claims": trial.claims.to_dict(),
        "reasons": [reason.as_document() for reason in trial.reasons],
        "full_runs": full_runs(trial),
        **{note.code: dict(note.values) for note in trial.notes},
        "context": dict(trial.source["context"]),
        "decision": trial.source["decision"],
    })  # fmt: skip
    return Report(
        html=_page(trial, cards, changes, summary),
        markdown=_markdown(trial, cards, changes),
        json=summary + "\n",
        subject=subject_text(trial),
        message=message_text(trial, cards),
        decision=trial.decision,
    )


def _page(
    trial: TrialReport, cards: Sequence[MetricCard], changes: Sequence[str], summary: str
) -> str:
    context = trial.source["context"]
    eligible = trial.eligibility.get("verdict")
    values = {
        "workload": trial.workload,
        "trial": context["trial"],
        "stage": context["stage"],
        "simulated": context.get("simulated"),
        "label": label(trial).text,
        "tone": label(trial).tone,
        "headline": headline(trial),
        "lede": lede(trial),
        "reasons": [
            {"code": reason.code, "message": with_fix(reason.message, reason.fix)}
            for reason in trial.reasons
        ],
        "controls": control_sentences(trial.judged.controls),
        "metric_cards": cards,
        "not_measured": trial.not_measured,
        "changes": changes,
        "facts": facts(trial),
        "next": next_command(trial),
        "places": places(trial),
        "earlier": earlier_table(trial),
        "arms": arms_table(trial),
        "eligibility": eligibility_table(trial),
        "eligibility_verdict": eligible and verdict_label(str(eligible)).text.lower(),
        "protocol": protocol(trial),
        "details": [*detail_tables(trial), *filter(None, [jobs_table(trial)])],
        "downloads": _downloads(trial, summary),
    }
    return render_page("report.html.j2", charts(trial), values)


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


def _markdown(trial: TrialReport, cards: Sequence[MetricCard], changes: Sequence[str]) -> str:
    """Verdict, reasons, key figures, arms; short enough to be read in a conversation."""
    context, text = trial.source["context"], escape_markdown
    lines = [
        f"### {TONE_MARKS[label(trial).tone]} {text(headline(trial))}",
        "",
        f"**{text(trial.workload)}**, trial {text(context['trial'])}, "
        f"stage {text(context['stage'])}. {text(' '.join(lede(trial)))}",
        "",
    ]
    if context.get("simulated"):
        lines += [f"> {text(str(context['simulated']))}", ""]
    lines += [f"- {text(with_fix(reason.message, reason.fix))}" for reason in trial.reasons]
    lines += [f"- {text(sentence)}" for sentence in control_sentences(trial.judged.controls)]
    lines.append("")
    if cards:
        rows = [(card.name, card.value, card.note) for card in cards]
        lines += markdown_table(("Key figure", "", ""), rows)
    arms = arms_table(trial)
    if arms is not None:
        kept = {*MARKDOWN_ROWS, f"Mean of {trial.metric}"}
        lines += markdown_table(("Arm", *arms.columns[1:]), [r for r in arms.rows if r[0] in kept])
    lines += ["**What would change the verdict**", ""]
    lines += [f"- {text(change)}" for change in changes[:MOST_CHANGES]]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


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
    lines = (
        statements.key_figures(trial.metric, trial.decision) if judged and trial.decision else []
    )
    others = cards[JUDGED_CARDS:] if judged else cards
    rest = ", ".join(f"{card.name}: {card.value}" for card in others if card.value != UNKNOWN)
    return [*lines, rest] if rest else lines


def message_text(trial: TrialReport, cards: Sequence[MetricCard]) -> str:
    """What was decided, the figures, what happened to the flag, and how to see the report."""
    context, reasons = trial.source["context"], trial.reasons
    lines = [f"{trial.workload}: {headline(trial)}.", ""]
    if trial.verdict is None:
        lines += [*lede(trial), "The flag was left as it was.", ""]
    lines += [f"- {with_fix(reason.message, reason.fix)}" for reason in reasons[:MOST_REASONS]]
    more = len(reasons) - MOST_REASONS
    lines += [f"- and {more} more reasons in the report"] if more > 0 else []
    lines += [""] if reasons else []
    figures = _figures(trial, cards) if cards else []
    lines += [*figures, ""] if figures else []
    notes = said(trial.notes) if trial.judged.speedup else []
    lines += [line for text in notes for line in (text, "")]
    lines += [flag_sentence(trial)] if trial.verdict is not None else []
    lines += [str(context["simulated"])] if context.get("simulated") else []
    report = f"compilegate report {trial.workload} --trial {context['trial']}"
    command = command_at(report, context["stage"])
    lines += [f"See the report: {context.get('place') or command}"]
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"
