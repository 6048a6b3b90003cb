"""A decision's figures as short text; what is unknown is a dash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.decision import FlagAction
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import (
    UNKNOWN,
    interval,
    money,
    number,
    shown,
    signed,
    significant,
)
from compilegate.domain.records.flags import HUMAN
from compilegate.domain.records.trials import RecordedDecision

FLAG_WORDS = {
    FlagAction.ENABLE: "on", FlagAction.DISABLE: "off", FlagAction.KEEP: "unchanged",
}  # fmt: skip


def decision_rows(
    decision: RecordedDecision, applied: Mapping[str, Any] | None = None
) -> list[tuple[str, str]]:
    """A decision's figures by name; ``applied`` is the outcome for the flag."""
    return [
        ("speed-up", speedup_words(decision)),
        ("quality", quality_words(decision)),
        ("saving", saving_words(decision)),
        ("flag", flag_words(decision, applied)),
    ]


def speedup_words(decision: RecordedDecision) -> str:
    """``1.31x (1.25 to 1.37)``."""
    speedup = decision.speedup or {}
    estimate = shown(speedup.get("estimate"), ratio)
    ends = interval(speedup.get("interval"), lambda value: f"{value:.2f}")
    return estimate if ends == UNKNOWN else f"{estimate} ({ends})"


def quality_words(decision: RecordedDecision) -> str:
    """``eval_loss +0.002 better (-0.01 to 0.02), margin 0.05``."""
    quality = decision.quality or {}
    estimate = number(quality.get("estimate"))
    if estimate is None:
        return UNKNOWN
    word = "better" if estimate > 0 else "worse" if estimate < 0 else "the same"
    size = f"{significant(abs(estimate), 2)} " if estimate else ""
    ends = interval(quality.get("interval"), lambda value: signed(significant(value, 2)))
    between = "" if ends == UNKNOWN else f" ({ends})"
    margin = shown(quality.get("margin"), lambda value: significant(value, 2))
    return f"{size}{word}{between}, margin {margin}"


def saving_words(decision: RecordedDecision) -> str:
    """``$1,200 per year``; conditional where the candidate is not on."""
    saving = decision.saving or {}
    per_year = shown(saving.get("usd_per_year"), money)
    if per_year == UNKNOWN:
        return per_year
    condition = "" if decision.flag_action is FlagAction.ENABLE else " if on"
    return f"{per_year} per year{condition}"


def flag_words(decision: RecordedDecision, applied: Mapping[str, Any] | None = None) -> str:
    """What the decision does to the flag, or what an override has ``applied`` instead."""
    applied = applied or {}
    if applied.get("approved") is False:
        return f"unchanged: not approved ({_author(applied.get('approval'))})"
    if held := applied.get("held_by"):
        whose = "proven regression" if held["by"] == TRAIN else "manual override"
        return f"unchanged: a {whose} stands ({_author(held)})"
    return FLAG_WORDS[decision.flag_action]


def full_run_words(full_runs: Mapping[str, Any] | None) -> str:
    """Who made the full runs and at what extra cost; empty for a trial without production."""
    if not full_runs:
        return ""
    usd = shown(full_runs["extra"]["usd"], money)
    hours = shown(full_runs["extra"]["gpu_hours"], significant)
    extra = f"made by {full_runs['made_by']}; extra {usd}, {hours} GPU-hours"
    return f"{extra}; {full_runs['exposed']}" if full_runs["carried"]["runs"] else extra


def _author(override: Mapping[str, Any] | None) -> str:
    if override is None:
        return "no approval requested"
    by = "production monitoring" if override["by"] == TRAIN else str(override["by"])
    return f"{by.removeprefix(HUMAN)}: {override['reason']}"
