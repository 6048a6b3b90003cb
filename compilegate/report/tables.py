"""The numbers behind the charts, as rows of text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.formats import (
    UNKNOWN,
    count,
    duration,
    fixed,
    interval,
    money,
    number,
    shown,
    significant,
)  # fmt: skip
from compilegate.domain.workload.model import BASELINE
from compilegate.report.trial_report import TrialReport, named

Row = Sequence[str]


@dataclass(frozen=True)
class Table:
    """``marked`` are rows to highlight; ``stacked`` tables become cards on a narrow screen."""

    id: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    marked: frozenset[int] = field(default_factory=frozenset)
    stacked: bool = False


@dataclass(frozen=True)
class _Figure:
    key: str
    name: str
    show: Callable[[Any], str]
    why_unknown: str


def _number(as_text: Callable[[float], str]) -> Callable[[Any], str]:
    return lambda value: shown(value, as_text)


SAME_QUALITY = "Price of the baseline's final loss"
COMPILE_TIMES = {"compile_seconds_cold", "compile_seconds_warm"}
FIGURES = (
    _Figure("samples_per_second", "Samples per second", _number(significant),
            "no steady state, or the runs did not record samples"),
    _Figure("samples_per_second_interval", "… 95% interval",
            lambda value: interval(value, significant), "needs two blocks"),
    _Figure("step_seconds_median", "Median step", _number(duration), "no step was timed"),
    _Figure("compile_seconds_cold", "Compile time, empty cache", _number(duration),
            "no cold compile was recorded"),
    _Figure("compile_seconds_warm", "Compile time, warm cache", _number(duration),
            "no block finished"),
    _Figure("recompiles", "Recompilations", _number(count), "not recorded by the runs"),
    _Figure("graph_breaks", "Graph breaks", _number(count), "not recorded by the runs"),
    _Figure("graphs", "Graphs", _number(count), "not recorded by the runs"),
    _Figure("peak_memory_gib", "Peak memory", _number(lambda x: f"{significant(x)} GiB"),
            "not recorded by the runs"),
    _Figure("usd_per_hour", "Price of an hour", _number(money), "no price is known"),
    _Figure("usd_per_1000_samples", "Price of 1,000 samples", _number(money),
            "needs a price and samples per second"),
    _Figure("usd_per_run", "Price of a production run", _number(money),
            "needs a price and a run's length"),
    _Figure("metric_mean", "Mean of {metric}", _number(fixed),
            "no full run finished"),
    _Figure("metric_sd", "… spread from seed to seed", _number(lambda x: significant(x, 2)),
            "needs two full runs"),
    _Figure("runs", "Full runs", _number(count), "not recorded"),
    _Figure("failed_runs", "Failed runs", _number(count), "not recorded"),
)  # fmt: skip


def arms_table(trial: TrialReport) -> Table | None:
    """One column per arm; what is unknown is explained under the table."""
    arms = trial.arms
    if not arms:
        return None
    planned = named(trial.plan.get("arms"))
    native = {BASELINE, *(arm["name"] for arm in planned if arm.get("compiler") == "none")}
    rows: list[Row] = [*_clusters(trial)]
    whys: dict[str, list[str]] = {}
    for figure in FIGURES:
        name = figure.name.format(metric=trial.metric)
        cells = [_arm_cell(figure, arm, native) for arm in arms]
        if UNKNOWN in cells:
            whys.setdefault(figure.why_unknown, []).append(name.lstrip("… "))
        rows.append((name, *cells))
    rows += _same_quality(trial)
    note = "; ".join(f"{', '.join(names)}: {why}" for why, names in whys.items())
    return Table(
        "arms", "The arms in numbers", ("", *(str(arm["name"]) for arm in arms)), rows,
        note=f"{UNKNOWN} is unknown. {note}." if note else "",
    )  # fmt: skip


def _same_quality(trial: TrialReport) -> list[Row]:
    """What a run costs up to the loss with which the baseline's runs end, where curves tell."""
    found = trial.saving.get("same_quality")
    if not found:
        return []
    sides = {BASELINE: "baseline", trial.candidate: "candidate"}

    def cell(name: str) -> str:
        side = sides.get(name)
        if side is None:
            return UNKNOWN
        never = found.get(f"steps_{side}") is None
        return "never gets there" if never else shown(found.get(f"usd_{side}"), money)

    return [(SAME_QUALITY, *(cell(str(arm["name"])) for arm in trial.arms))]


def _clusters(trial: TrialReport) -> list[Row]:
    """What each arm runs on, where that is not the same for all."""
    planned = {arm["name"]: arm for arm in named(trial.plan.get("arms"))}
    found = [planned.get(arm["name"]) or {} for arm in trial.arms]
    cells = [
        f"{arm['instance_count']} x {arm['instance_type']}" if arm.get("instance_type") else UNKNOWN
        for arm in found
    ]
    return [("Cluster", *cells)] if len(set(cells)) > 1 else []


def _arm_cell(figure: _Figure, arm: Mapping[str, Any], native: Collection[str]) -> str:
    value = arm.get(figure.key)
    if figure.key in COMPILE_TIMES and arm.get("name") in native and not number(value):
        return "none"  # an arm without a compiler compiles nothing, so nothing is unknown
    return figure.show(value)


def eligibility_table(trial: TrialReport) -> Table | None:
    """Every reason that eligibility gave, each once with all it is about."""
    found: dict[tuple[str, ...], list[str]] = {}
    for source in (trial.eligibility, *(trial.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            key = tuple(
                str(reason.get(part) or "") for part in ("severity", "code", "message", "fix")
            )
            found.setdefault(key, []).append(str(source.get("name") or "workload"))
    if not found:
        return None
    return Table(
        "eligibility", "Eligibility", ("About", "Weight", "Code", "What was found", "What helps"),
        [(", ".join(about), *reason) for reason, about in found.items()],
        marked=frozenset(i for i, reason in enumerate(found) if reason[0] == "block"), stacked=True,
    )  # fmt: skip
