"""The report as a pull request comment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compilegate.domain.reasons import with_fix
from compilegate.report import words
from compilegate.report.controls import control_sentences
from compilegate.report.headline import headline
from compilegate.report.metric_cards import metric_cards
from compilegate.report.recommendations import recommendations
from compilegate.report.tables import SAME_QUALITY, arms_table
from compilegate.report.trial_report import TrialReport

SHOWN = {
    "Samples per second", "Median step", "Compile time, warm cache", "Recompilations",
    "Peak memory", "Cluster", "Price of 1,000 samples", "Price of a production run",
    "Full runs", "Failed runs", SAME_QUALITY,
}  # fmt: skip
MARKS = {"good": "✅", "off": "⏹️", "open": "❔", "bad": "⚠️"}
MAX_CHANGES = 3


def markdown(trial: TrialReport) -> str:
    """Verdict, reasons, key figures, arms; short enough to be read in a conversation."""
    context = trial.source["context"]
    lines = [
        f"### {MARKS[words.label(trial).tone]} {inert(headline(trial))}",
        "",
        f"**{inert(trial.workload)}**, trial {inert(context['trial'])}, "
        f"stage {inert(context['stage'])}. {inert(' '.join(words.lede(trial)))}",
        "",
    ]
    if context.get("simulated"):
        lines += [f"> {inert(str(context['simulated']))}", ""]
    lines += [f"- {inert(with_fix(reason.message, reason.fix))}" for reason in trial.reasons]
    lines += [f"- {inert(text)}" for text in control_sentences(trial.decision)]
    lines += ["", *_figures(trial), *_arms(trial), *_changes(trial)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def inert(text: str) -> str:
    """Text without markup, HTML, mentions or line breaks."""
    flat = " ".join(str(text).split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", flat)
    return flat.replace("@", "@\u200b").replace("://", ":\u200b//")


def _figures(trial: TrialReport) -> list[str]:
    rows = [(card.name, card.value, card.note) for card in metric_cards(trial)]
    return table_lines(("Key figure", "", ""), rows) if rows else []


def _arms(trial: TrialReport) -> list[str]:
    table = arms_table(trial)
    if table is None:
        return []
    metric = f"Mean of {trial.metric}"
    rows = [row for row in table.rows if row[0] in SHOWN or row[0] == metric]
    return table_lines(("Arm", *table.columns[1:]), rows)


def _changes(trial: TrialReport) -> list[str]:
    found = recommendations(trial)[:MAX_CHANGES]
    return ["**What would change the verdict**", "", *(f"- {inert(text)}" for text in found), ""]


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; whatever a cell holds stays text."""
    align = ["---", *("---:" for _ in columns[1:])]
    body = [columns, *rows]
    lines = ["| " + " | ".join(inert(cell) for cell in row) + " |" for row in body]
    return [lines[0], "| " + " | ".join(align) + " |", *lines[1:], ""]
