"""The numbers behind the charts as rows of text: arms, eligibility, plan, and every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.arithmetic import ratio
from compilegate.domain.formats import (
    UNKNOWN,
    count,
    duration,
    fixed,
    interval,
    money,
    shown,
    significant,
)  # fmt: skip
from compilegate.domain.judging.evidence import PROBATION, FullRun
from compilegate.domain.reasons import Severity
from compilegate.domain.utc import bare_minute
from compilegate.domain.workload.model import BASELINE
from compilegate.report.measured import Measured, MeasuredArm, began_at, reason_of, usd_of
from compilegate.report.trial_report import TrialReport

Row = Sequence[str]


@dataclass(frozen=True)
class Table:
    """``marked`` are rows to highlight; ``stacked`` tables become cards on a narrow screen."""

    id: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    marked: frozenset[int] = frozenset()
    stacked: bool = False


SAME_QUALITY = "Price of the same final loss"
COMPILE_TIMES = {"compile_seconds_cold", "compile_seconds_warm"}
# Of a probation, whose quality is judged on fewer of the candidate's runs: production's alone.
OF_BOTH_PHASES = {"metric_mean", "runs"}
BOTH_PHASES = ", trial and production"
NOT_RECORDED = "not recorded by the runs"
# Of the decision's arms: key, name, format, and why it may be unknown.
FIGURES: tuple[tuple[str, str, Callable[[float], str], str], ...] = (
    ("samples_per_second", "Samples per second, short blocks", significant,
     "no steady state, or the runs did not record samples"),
    ("samples_per_second_interval", "… 95% interval", significant, "needs two blocks"),
    ("step_seconds_median", "Median step, short blocks", duration, "no step was timed"),
    ("compile_seconds_cold", "Compile time, empty cache", duration, "no cold compile was recorded"),
    ("compile_seconds_warm", "Compile time, warm cache", duration, "no block finished"),
    ("recompiles", "Recompilations", count, NOT_RECORDED),
    ("graph_breaks", "Graph breaks", count, NOT_RECORDED),
    ("graphs", "Graphs", count, NOT_RECORDED),
    ("peak_memory_gib", "Peak memory", lambda x: f"{significant(x)} GiB", NOT_RECORDED),
    ("usd_per_hour", "Price of an hour", money, "no price is known"),
    ("usd_per_1000_samples", "Price of 1,000 samples", money,
     "needs a price and samples per second"),
    ("usd_per_run", "Price of a production run", money, "needs a price and a run's length"),
    ("metric_mean", "Mean of {metric}", fixed, "no full run finished"),
    ("metric_sd", "… spread from seed to seed", lambda x: significant(x, 2),
     "needs two full runs"),
    ("runs", "Full runs", count, "not recorded"),
    ("failed_runs", "Failed runs", count, "not recorded"),
)  # fmt: skip


def arms_table(trial: TrialReport) -> Table | None:
    """One column per arm; what is unknown is explained under the table."""
    arms = trial.judged.arms
    if not arms:
        return None
    native = {BASELINE, *(arm.name for arm in trial.planned_arms if arm.compiler == "none")}
    rows: list[Row] = [*_clusters(trial)]
    unknown: dict[str, list[str]] = {}
    for key, title, as_text, why in FIGURES:
        name = title.format(metric=trial.metric)
        name += BOTH_PHASES if trial.on_probation and key in OF_BOTH_PHASES else ""
        cells = [
            # An arm without a compiler compiles nothing, so nothing is unknown.
            "none" if key in COMPILE_TIMES and arm.name in native and not getattr(arm, key)
            else _figure(getattr(arm, key), as_text)
            for arm in trial.priced_arms
        ]  # fmt: skip
        if UNKNOWN in cells:
            unknown.setdefault(why, []).append(name.lstrip("… "))
        rows.append((name, *cells))
    rows += _same_quality(trial)
    note = "; ".join(f"{', '.join(names)}: {why}" for why, names in unknown.items())
    return Table(
        "arms", "The arms in numbers", ("Figure", *(arm.name for arm in arms)), rows,
        note=f"{UNKNOWN} is unknown. {note}." if note else "",
    )  # fmt: skip


def _figure(value: Any, as_text: Callable[[float], str]) -> str:
    return interval(value, as_text) if isinstance(value, tuple) else shown(value, as_text)


def _same_quality(trial: TrialReport) -> list[Row]:
    """What a run costs up to the loss that both arms reach, if curves show it."""
    same = trial.judged.saving.same_quality if trial.judged.saving else None
    if same is None:
        return []
    sides = {
        BASELINE: (same.steps_baseline, same.usd_baseline),
        trial.candidate: (same.steps_candidate, same.usd_candidate),
    }
    cells = [
        UNKNOWN if arm.name not in sides
        else "not reached" if sides[arm.name][0] is None
        else shown(sides[arm.name][1], money)
        for arm in trial.judged.arms
    ]  # fmt: skip
    return [(SAME_QUALITY, *cells)]


def _clusters(trial: TrialReport) -> list[Row]:
    """What each arm runs on, where that is not the same for all."""
    planned = {arm.name: arm for arm in trial.planned_arms}
    arms = [planned.get(arm.name) for arm in trial.judged.arms]
    cells = [f"{arm.instance_count} x {arm.instance_type}" if arm else UNKNOWN for arm in arms]
    return [("Cluster", *cells)] if len(set(cells)) > 1 else []


def eligibility_table(trial: TrialReport) -> Table | None:
    """Every reason that eligibility gave, each once with all it is about."""
    about: dict[tuple[str, ...], list[str]] = {}
    for source in (trial.eligibility, *(trial.eligibility.get("candidates") or ())):
        for reason in source.get("reasons") or ():
            parts = ("severity", "code", "message", "fix")
            key = tuple(str(reason.get(part) or "") for part in parts)
            about.setdefault(key, []).append(str(source.get("name") or "workload"))
    if not about:
        return None
    return Table(
        "eligibility", "Eligibility", ("About", "Severity", "Code", "Reason", "What helps"),
        [(", ".join(names), *reason) for reason, names in about.items()],
        marked=frozenset(i for i, reason in enumerate(about) if reason[0] == Severity.BLOCK),
        stacked=True,
    )  # fmt: skip


def detail_tables(trial: TrialReport) -> list[Table]:
    """The plan and the evidence; a table without rows is left out."""
    tables = [_plan_table(trial)]
    if trial.measured:
        tables += [
            _fingerprint_table(trial.measured), _blocks_table(trial.measured),
            _runs_table(trial.measured), canary_table(trial.measured),
            _failures_table(trial.measured),
        ]  # fmt: skip
    return [table for table in tables if table.rows]


def _plan_table(trial: TrialReport) -> Table:
    """The arms as they were planned."""
    arms = trial.planned_arms
    names = ("compiler", "instance_type", "instance_count", "precision", "batch_size",
             "learning_rate", "distribution", "usd_per_hour", "image")  # fmt: skip
    rows = [
        (name.replace("_", " ").replace("usd", "USD"), *(str(getattr(arm, name)) for arm in arms))
        for name in names
        if arms
    ]
    marked = frozenset(place for place, row in enumerate(rows) if len(set(row[1:])) > 1)
    return Table(
        "plan", "The arms as planned", ("Setting", *(arm.name for arm in arms)), rows,
        note="Marked rows are what the candidates change." if marked else "", marked=marked,
    )  # fmt: skip


def _blocks_table(measured: Measured) -> Table:
    """Steady step and overhead of every block, with the speed-up."""
    gains = [measured.speedups(arm) for arm in measured.candidates]
    columns = ["Block"]
    for arm in measured.arms:
        columns += [f"{arm.name}: steady step", "+ compile and warm-up"]
    columns += [f"{arm.name}: predicted speed-up" for arm in measured.candidates]
    rows = []
    for n in sorted({n for arm in measured.arms for n in arm.blocks}):
        row = [str(n)]
        for arm in measured.arms:
            segment = arm.blocks[n].segment if n in arm.blocks else None
            row += [
                duration(segment.steady_step_seconds) if segment else UNKNOWN,
                duration(segment.overhead_seconds) if segment else UNKNOWN,
            ]
        rows.append((*row, *(ratio(gain[n]) if n in gain else UNKNOWN for gain in gains)))
    return Table(
        "blocks", "Every short block", columns, rows,
        note=f"{UNKNOWN}: the segment failed or was too short to have a steady state.",
    )  # fmt: skip


def metric_cell(run: FullRun) -> str:
    """The run's final metric."""
    return shown(run.metric, lambda x: fixed(x, 5)) if run.finished else "failed"


def _runs_table(measured: Measured) -> Table:
    rows = [
        (
            arm.name,
            UNKNOWN if run.seed is None else str(run.seed),
            metric_cell(run),
            shown(run.wall_seconds, duration),
            reason_of(run) or ("production" if run.stage == PROBATION else ""),
        )
        for arm in measured.arms
        for run in arm.arm.full_runs
    ]
    metric = measured.evidence.quality.metric
    columns = ("Arm", "Seed", metric, "Wall clock of the job", "Remark")
    return Table("runs", "Every full run", columns, rows, stacked=True)


RUN_MODES = {"shadow": "extra", "canary": "as canary", "production": "in production"}


def canary_table(measured: Measured) -> Table:
    """Every production run that became evidence, in the order of time."""
    runs = [(arm.name, run) for arm in measured.arms for run in arm.quality if run.mode != "shadow"]
    rows = [
        (shown(began_at(run), bare_minute), name, metric_cell(run), shown(usd_of(run), money),
         RUN_MODES[run.mode], run.job or UNKNOWN)
        for name, run in sorted(runs, key=lambda one: one[1].order)
    ]  # fmt: skip
    columns = ("Begun (UTC)", "Arm", measured.evidence.quality.metric, "Price", "As", "Job")
    return Table(
        "canary-runs", "Canary and production runs used as evidence", columns, rows, stacked=True,
        note="These runs cost the trial nothing extra.",
    )  # fmt: skip


def _failures_table(measured: Measured) -> Table:
    """Speed segments that did not finish."""
    rows = [
        (arm.name, str(n), reason_of(block.run) or "no reason was recorded")
        for arm in measured.arms
        for n, block in arm.blocks.items()
        if not block.run.finished
    ]
    return Table("failures", "Failed segments", ("Arm", "Block", "Reason"), rows, stacked=True)


def _fingerprint_table(measured: Measured) -> Table:
    """What the arms ran on; a key whose values differ is marked."""
    prints = [_fingerprints(arm) for arm in measured.arms]
    keys = sorted({key for values in prints for key in values})
    rows = [(key, *(" / ".join(values.get(key, [UNKNOWN])) for values in prints)) for key in keys]
    marked = frozenset(
        place for place, row in enumerate(rows) if len(set(row[1:])) > 1 or " / " in row[1]
    )
    return Table(
        "fingerprint", "Fingerprint", ("Key", *(arm.name for arm in measured.arms)), rows,
        note="Marked rows differ between or within arms." if marked else "Equal in every arm.",
        marked=marked,
    )  # fmt: skip


def _fingerprints(arm: MeasuredArm) -> dict[str, list[str]]:
    """Every value of each key, in the order of the runs."""
    values: dict[str, list[str]] = {}
    for run in arm.arm.runs:
        for key, value in (run.fingerprint or {}).items():
            text = UNKNOWN if value is None else str(value)
            if text not in values.setdefault(str(key), []):
                values[str(key)].append(text)
    return values
