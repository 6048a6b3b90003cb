"""A decision's figures as short text; what is unknown is a dash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.flag_change import TRAIN
from compilegate.domain.formats import (
    UNKNOWN,
    interval,
    money,
    number,
    ratio,
    shown,
    signed,
    significant,
)
from compilegate.domain.records.flags import HUMAN


def speedup_words(decision: Mapping[str, Any]) -> str:
    """``1.31x (1.25 to 1.37)``."""
    speedup = decision.get("speedup") or {}
    estimate = shown(speedup.get("estimate"), ratio)
    ends = interval(speedup.get("interval"), lambda value: f"{value:.2f}")
    return estimate if ends == UNKNOWN else f"{estimate} ({ends})"


def quality_words(decision: Mapping[str, Any]) -> str:
    """``eval_loss +0.002 better (-0.01 to 0.02), margin 0.05``."""
    quality = decision.get("quality") or {}
    estimate = number(quality.get("estimate"))
    if estimate is None:
        return UNKNOWN
    word = "better" if estimate > 0 else "worse" if estimate < 0 else "the same"
    size = f"{significant(abs(estimate), 2)} " if estimate else ""
    ends = interval(quality.get("interval"), lambda value: signed(significant(value, 2)))
    between = "" if ends == UNKNOWN else f" ({ends})"
    margin = shown(quality.get("margin"), lambda value: significant(value, 2))
    return f"{size}{word}{between}, margin {margin}"


def saving_words(decision: Mapping[str, Any]) -> str:
    """``$1,200 per year``; conditional where the candidate is not on."""
    saving = decision.get("saving") or {}
    per_year = shown(saving.get("usd_per_year"), money)
    if per_year == UNKNOWN:
        return per_year
    condition = "" if decision.get("verdict") in ("promote", "permanent") else " if on"
    return f"{per_year} per year{condition}"


def flag_words(decision: Mapping[str, Any], applied: Mapping[str, Any] | None = None) -> str:
    """What the decision does to the flag, or what a person's word has ``applied`` instead."""
    word = applied or {}
    if word.get("approved") is False:
        return f"left as it was: not approved ({_said(word.get('approval'))})"
    if word.get("held_by"):
        held = word["held_by"]
        whose = "a proven regression" if held["by"] == TRAIN else "a person's word"
        return f"left as it was: {whose} stands ({_said(held)})"
    action = str((decision.get("flag") or {}).get("action"))
    return {"enable": "on", "disable": "off", "keep": "left as it was"}.get(action, UNKNOWN)


def full_run_words(full_runs: Mapping[str, Any] | None) -> str:
    """Who made the full runs, what was extra, what production met; empty for a plain trial."""
    if not full_runs:
        return ""
    usd, hours = (
        shown(full_runs["extra"]["usd"], money),
        shown(full_runs["extra"]["gpu_hours"], significant),
    )
    extra = f"made by {full_runs['made_by']}; extra {usd}, {hours} GPU-hours"
    return f"{extra}; {full_runs['exposed']}" if full_runs["carried"]["runs"] else extra


def _said(word: Mapping[str, Any] | None) -> str:
    if word is None:
        return "nobody was asked"
    by = "the watch over production" if word["by"] == TRAIN else str(word["by"])
    return f"{by.removeprefix(HUMAN)}: {word['reason']}"
