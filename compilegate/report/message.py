"""The notification: a subject for SNS and a few lines of plain text."""

from __future__ import annotations

from compilegate.domain.notification import SUBJECT_MAX
from compilegate.report import words
from compilegate.report.case import Case
from compilegate.report.formats import UNKNOWN, ascii_only
from compilegate.report.headline import headline
from compilegate.report.tiles import tiles

REASONS_MAX = 4
LOCAL = "local"


def subject(case: Case) -> str:
    """ASCII, one line, less than 100 characters (SNS): workload, verdict and its reason."""
    stage = case.source["context"]["stage"]
    opening = f"[compilegate {stage}] {case.workload}: "
    full = ascii_only(opening + headline(case))
    if len(full) <= SUBJECT_MAX:
        return full
    return _cut(ascii_only(opening + headline(case, brief=True)), SUBJECT_MAX)


def message(case: Case) -> str:
    """What was decided, the figures, what happened to the flag, and how to see the report."""
    context = case.source["context"]
    lines = [f"{case.workload}: {headline(case)}.", ""]
    if case.verdict is None:
        lines += [*words.lede(case), "The flag was left as it was.", ""]
    lines += [f"- {reason['message']}" for reason in case.reasons[:REASONS_MAX]]
    more = len(case.reasons) - REASONS_MAX
    lines += [f"- and {more} more reasons in the report"] if more > 0 else []
    lines += [""] if case.reasons else []
    figures = [f"{tile.name}: {tile.value}" for tile in tiles(case) if tile.value != UNKNOWN]
    lines += [", ".join(figures), ""] if figures else []
    lines += [words.flag_sentence(case)] if case.verdict is not None else []
    lines += [str(context["simulated"])] if context.get("simulated") else []
    lines += [f"See the report: {_command(case)}"]
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"


def _command(case: Case) -> str:
    context = case.source["context"]
    if context.get("place"):
        return str(context["place"])
    local = " --local" if context["stage"] == LOCAL else ""
    return f"compilegate report {case.workload} --trial {context['trial']}{local}"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit - 3].rstrip(" ,.:;(") + "..."
