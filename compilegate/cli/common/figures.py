"""A decision's figures as short text; what is unknown is a dash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.decision import FlagAction
from compilegate.domain.economics import Range
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import money, shown, significant
from compilegate.domain.records.flags import HUMAN, Author
from compilegate.domain.records.trials import FlagOutcome, GivenAnswer, RecordedDecision
from compilegate.report import statements
from compilegate.report.figures import DecisionFigures

FLAG_WORDS = {
    FlagAction.ENABLE: "on", FlagAction.DISABLE: "off", FlagAction.KEEP: "unchanged",
}  # fmt: skip


def decision_rows(
    decision: RecordedDecision, applied: FlagOutcome | None = None
) -> list[tuple[str, str]]:
    """A decision's figures by name; ``applied`` is the outcome for the flag."""
    figures = DecisionFigures.read(decision)
    return [
        ("speed-up", statements.speedup(figures.speed)),
        ("quality", statements.quality(figures)),
        ("saving", statements.saving(figures)),
        ("flag", flag_words(decision, applied)),
    ]


def saving_between(saving: Range) -> str:
    """``up to $50,797``; of a saving that is never 0 both ends."""
    return f"{f'{money(saving.low)} to' if saving.low else 'up to'} {money(saving.high)}"


def flag_words(decision: RecordedDecision, applied: FlagOutcome | None = None) -> str:
    """What the decision does to the flag, or what an override has ``applied`` instead."""
    if applied is not None and not applied.approved:
        return f"unchanged: not approved ({_author(applied.approval)})"
    if applied is not None and applied.held_by is not None:
        whose = "proven regression" if applied.held_by.by == TRAIN else "manual override"
        return f"unchanged: a {whose} stands ({_author(applied.held_by)})"
    return FLAG_WORDS[decision.flag_action]


def full_run_words(full_runs: Mapping[str, Any] | None) -> str:
    """Who made the full runs and at what extra cost; empty for a trial without production."""
    if not full_runs:
        return ""
    usd = shown(full_runs["extra"]["usd"], money)
    hours = shown(full_runs["extra"]["gpu_hours"], significant)
    extra = f"made by {full_runs['made_by']}; extra {usd}, {hours} GPU-hours"
    return f"{extra}; {full_runs['exposed']}" if full_runs["carried"]["runs"] else extra


def _author(change: Author | GivenAnswer | None) -> str:
    if change is None:
        return "no approval requested"
    by = "production monitoring" if change.by == TRAIN else change.by
    return f"{by.removeprefix(HUMAN)}: {change.reason}"
