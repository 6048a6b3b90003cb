"""The numbers behind the charts, as rows of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.report.case import Case
from compilegate.report.formats import (
    UNKNOWN,
    count,
    duration,
    interval,
    money,
    number,
    ratio,
    shown,
    significant,
)  # fmt: skip
from compilegate.report.measured import Measured

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


def _compile(value: Any) -> str:
    return "none" if number(value) == 0 else shown(value, duration)


FIGURES = (
    _Figure("samples_per_second", "Samples per second", _number(significant),
            "no steady state, or the runs did not record samples"),
    _Figure("samples_per_second_interval", "… 95 % interval",
            lambda value: interval(value, significant), "needs two blocks"),
    _Figure("step_seconds_median", "Median step", _number(duration), "no step was timed"),
    _Figure("compile_seconds_cold", "Compile time, empty cache", _compile,
            "no cold compile was recorded"),
    _Figure("compile_seconds_warm", "Compile time, warm cache", _compile, "no block finished"),
    _Figure("recompiles", "Recompilations", _number(count), "not recorded by the runs"),
    _Figure("graph_breaks", "Graph breaks", _number(count), "not recorded by the runs"),
    _Figure("graphs", "Graphs", _number(count), "not recorded by the runs"),
    _Figure("peak_memory_gib", "Peak memory", _number(lambda x: f"{significant(x)} GiB"),
            "not recorded by the runs"),
    _Figure("usd_per_run", "Price of a production run", _number(money),
            "needs a price and a run's length"),
    _Figure("metric_mean", "Mean of {metric}", _number(lambda x: significant(x, 4)),
            "no full run finished"),
    _Figure("metric_sd", "… spread from seed to seed", _number(lambda x: significant(x, 2)),
            "needs two full runs"),
    _Figure("runs", "Full runs", _number(count), "not recorded"),
    _Figure("failed_runs", "Failed runs", _number(count), "not recorded"),
)  # fmt: skip


def arms_table(case: Case) -> Table | None:
    """One column per arm; what is unknown is explained under the table."""
    arms = [arm for arm in case.decision.get("arms") or () if isinstance(arm, Mapping)]
    if not arms:
        return None
    rows: list[Row] = []
    whys: dict[str, list[str]] = {}
    for figure in FIGURES:
        name = figure.name.format(metric=case.metric)
        cells = [figure.show(arm.get(figure.key)) for arm in arms]
        if UNKNOWN in cells:
            whys.setdefault(figure.why_unknown, []).append(name.lstrip("… "))
        rows.append((name, *cells))
    note = "; ".join(f"{', '.join(names)}: {why}" for why, names in whys.items())
    return Table(
        "arms", "The arms in numbers", ("", *(str(arm.get("name")) for arm in arms)), rows,
        note=f"{UNKNOWN} is unknown. {note}." if note else "",
    )  # fmt: skip


def blocks_table(measured: Measured) -> Table | None:
    """Steady step and overhead of every block, with the speed-up."""
    numbers = sorted({n for arm in measured.arms for n in arm.blocks})
    if not numbers:
        return None
    gains = [measured.speedups(arm) for arm in measured.candidates]
    columns = ["Block"]
    for arm in measured.arms:
        columns += [f"{arm.name}: steady step", "+ compile and warm-up"]
    columns += [f"{arm.name}: speed-up" for arm in measured.candidates]
    rows = []
    for block in numbers:
        row = [str(block)]
        for arm in measured.arms:
            segment = found.segment if (found := arm.blocks.get(block)) else None
            row += [
                duration(segment.steady_step_seconds) if segment else UNKNOWN,
                duration(segment.overhead_seconds) if segment else UNKNOWN,
            ]
        rows.append((*row, *(ratio(g[block]) if block in g else UNKNOWN for g in gains)))
    return Table(
        "blocks", "Every block", columns, rows,
        note=f"{UNKNOWN}: the segment failed or was too short to have a steady state.",
    )  # fmt: skip


def runs_table(measured: Measured) -> Table | None:
    """Every full run."""
    rows = [
        (
            arm.name,
            UNKNOWN if run.seed is None else str(run.seed),
            shown(run.metric, lambda x: significant(x, 5)) if run.finished else "failed",
            shown(run.wall_seconds, duration),
            str(run.detail.get("reason") or ""),
        )
        for arm in measured.arms
        for run in arm.quality
    ]
    if not rows:
        return None
    metric = measured.evidence.quality.metric
    return Table(
        "runs", "Every full run", ("Arm", "Seed", metric, "Wall clock of the job", "Remark"), rows,
        stacked=True,
    )  # fmt: skip


def failures_table(measured: Measured) -> Table | None:
    """Speed segments that did not finish."""
    rows = [
        (arm.name, str(number_), str(block.run.detail.get("reason") or "no reason was recorded"))
        for arm in measured.arms
        for number_, block in arm.blocks.items()
        if not block.run.finished
    ]
    if not rows:
        return None
    return Table("failures", "Failed segments", ("Arm", "Block", "Reason"), rows, stacked=True)


def eligibility_table(case: Case) -> Table | None:
    """Every reason that eligibility gave, the workload's own first."""
    rows: list[Row] = []
    marked: set[int] = set()
    for source in (case.eligibility, *(case.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            if reason.get("severity") == "block":
                marked.add(len(rows))
            rows.append((
                str(source.get("name") or "workload"), str(reason.get("severity") or UNKNOWN),
                str(reason.get("code") or UNKNOWN), str(reason.get("message") or ""),
                str(reason.get("fix") or ""),
            ))  # fmt: skip
    if not rows:
        return None
    return Table(
        "eligibility", "Eligibility",
        ("Concerns", "Weight", "Code", "What was found", "What helps"), rows,
        marked=frozenset(marked), stacked=True,
    )  # fmt: skip


def fingerprint_table(measured: Measured) -> Table | None:
    """What the arms ran on; a key whose values differ is marked."""
    prints = [_fingerprints(arm) for arm in measured.arms]
    keys = sorted({key for found in prints for key in found})
    if not keys:
        return None
    rows = [(key, *(" / ".join(found.get(key, [UNKNOWN])) for found in prints)) for key in keys]
    marked = frozenset(
        place for place, row in enumerate(rows) if len(set(row[1:])) > 1 or " / " in row[1]
    )
    return Table(
        "fingerprint", "Fingerprint", ("", *(arm.name for arm in measured.arms)), rows,
        note="Marked rows differ between or within arms." if marked else "Equal in every arm.",
        marked=marked,
    )  # fmt: skip


def _fingerprints(arm: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for run in arm.arm.runs:
        given = run.detail.get("fingerprint")
        for key, value in given.items() if isinstance(given, Mapping) else ():
            values = found.setdefault(str(key), [])
            text = UNKNOWN if value is None else str(value)
            if text not in values:
                values.append(text)
    return found


def plan_table(case: Case) -> Table | None:
    """The arms as they were asked for."""
    arms = [arm for arm in case.plan.get("arms") or () if isinstance(arm, Mapping)]
    if not arms:
        return None
    names = ("compiler", "instance_type", "instance_count", "precision", "batch_size",
             "learning_rate", "distribution", "usd_per_hour", "image")  # fmt: skip
    rows = [
        (name.replace("_", " ").replace("usd", "USD"),
         *(UNKNOWN if arm.get(name) is None else str(arm[name]) for arm in arms))
        for name in names
        if any(arm.get(name) is not None for arm in arms)
    ]  # fmt: skip
    marked = frozenset(place for place, row in enumerate(rows) if len(set(row[1:])) > 1)
    return Table(
        "plan", "The arms as planned", ("", *(str(arm.get("name")) for arm in arms)), rows,
        note="Marked rows are what the candidates change." if marked else "", marked=marked,
    )  # fmt: skip


def protocol(case: Case) -> list[tuple[str, str]]:
    """How it was measured, as name and value."""
    policy, plan, decision = case.policy, case.plan, case.decision
    blocks, steps = number(case.speed.get("blocks")), number(plan.get("speed_steps"))
    seeds = plan.get("seeds") or (case.evidence.get("plan") or {}).get("seeds") or ()
    rows = [
        ("Speed", _join(shown(blocks, count), "blocks measured, of at most",
                        shown(plan.get("max_blocks"), count), "with", shown(steps, count),
                        "steps per arm") if blocks or steps else ""),
        ("Quality",
         f"full runs per arm with the seeds {', '.join(map(str, seeds))}" if seeds else ""),
        ("Thresholds", _join("proven above", shown(policy.get("reject_speedup"), ratio),
                             "and estimated at", shown(policy.get("promote_speedup"), ratio),
                             "or more") if policy else ""),
        ("Error rate", f"at most {shown(policy.get('alpha'), significant)} per gate, one-sided"
         if policy else ""),
        ("Judge", str(decision.get("judge_version") or "")),
        ("Decision", str(decision.get("decision_id") or "")),
        ("Trial", case.source["context"]["trial"]),
        ("Stage", case.source["context"]["stage"]),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value]


def _join(*parts: str) -> str:
    return " ".join(parts)
