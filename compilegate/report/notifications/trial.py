"""The notification: a subject for SNS and a few lines of plain text."""

from __future__ import annotations

from compilegate.domain.formats import UNKNOWN, ascii_only
from compilegate.domain.notification import SUBJECT_MAX
from compilegate.domain.reasons import with_fix
from compilegate.report import words
from compilegate.report.headline import headline
from compilegate.report.metric_cards import metric_cards
from compilegate.report.trial_report import TrialReport

REASONS_MAX = 4
LOCAL = "local"


def subject(trial: TrialReport) -> str:
    """ASCII, one line, less than 100 characters (SNS): workload, verdict and its reason."""
    stage = trial.source["context"]["stage"]
    opening = f"[compilegate {stage}] {trial.workload}: "
    full = ascii_only(opening + headline(trial))
    if len(full) <= SUBJECT_MAX:
        return full
    return _cut(ascii_only(opening + headline(trial, brief=True)), SUBJECT_MAX)


def message(trial: TrialReport) -> str:
    """What was decided, the figures, what happened to the flag, and how to see the report."""
    context = trial.source["context"]
    lines = [f"{trial.workload}: {headline(trial)}.", ""]
    if trial.verdict is None:
        lines += [*words.lede(trial), "The flag was left as it was.", ""]
    lines += [f"- {with_fix(reason.message, reason.fix)}" for reason in trial.reasons[:REASONS_MAX]]
    more = len(trial.reasons) - REASONS_MAX
    lines += [f"- and {more} more reasons in the report"] if more > 0 else []
    lines += [""] if trial.reasons else []
    figures = [
        f"{card.name}: {card.value}" for card in metric_cards(trial) if card.value != UNKNOWN
    ]
    lines += [", ".join(figures), ""] if figures else []
    lines += [words.flag_sentence(trial)] if trial.verdict is not None else []
    lines += [str(context["simulated"])] if context.get("simulated") else []
    lines += [f"See the report: {_command(trial)}"]
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"


def _command(trial: TrialReport) -> str:
    context = trial.source["context"]
    if context.get("place"):
        return str(context["place"])
    local = " --local" if context["stage"] == LOCAL else ""
    return f"compilegate report {trial.workload} --trial {context['trial']}{local}"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit - 3].rstrip(" ,.:;(") + "..."
