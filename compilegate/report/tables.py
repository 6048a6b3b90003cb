"""What stands beside the figures: tables, how it was measured, places, and what to do next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain import console, naming
from compilegate.domain.arithmetic import ratio
from compilegate.domain.claims import LOCAL_STAGE, VERDICTS, Claims, command_at, verdict_label
from compilegate.domain.decision import CANARY, SHADOW, Decision, Verdict
from compilegate.domain.formats import (
    UNKNOWN,
    count,
    duration,
    fixed,
    interval,
    money,
    percent,
    shown,
    significant,
)
from compilegate.domain.judging.evidence import PROBATION, Evidence, FullRun, SpeedRun
from compilegate.domain.judging.measured import Measured, MeasuredArm
from compilegate.domain.reasons import Severity
from compilegate.domain.utc import bare_minute
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.markup import Row, csv_text, link, paragraph, rows
from compilegate.report.trial_report import TrialReport


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
# Of a guardrail or a signal, by what its gate came to; in production it has no gate.
OUTCOMES = {"held": "holds", "worse": "worse", "unreported": "not reported", None: "watched"}
# Of the decision's arms: key, name, format, and why it may be unknown.
FIGURES: tuple[tuple[str, str, Callable[[float], str], str], ...] = (
    ("samples_per_second", "Samples per second, short blocks", significant,
     "no steady state, or the runs did not record samples"),
    ("samples_per_second_interval", "… 95% interval", significant, "needs two blocks"),
    ("step_seconds_median", "Steady step, short blocks", duration, "no steady state"),
    ("compile_seconds_cold", "Compile time, empty cache", duration, "no cold compile was recorded"),
    ("compile_seconds_warm", "Compile time, warm cache", duration, "no block finished"),
    ("recompiles", "Recompilations", count, NOT_RECORDED),
    ("graph_breaks", "Graph breaks", count, NOT_RECORDED),
    ("graphs", "Graphs", count, NOT_RECORDED),
    ("peak_memory_gib", "Peak memory", lambda x: f"{significant(x)} GiB", NOT_RECORDED),
    ("usd_per_hour", "Price of an hour", money, "no price of this arm is known"),
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
        cells = []
        for arm in trial.arms:
            # An arm without a compiler compiles nothing, so nothing is unknown.
            never = key in COMPILE_TIMES and arm.name in native
            cells.append(_figure(getattr(arm, key), as_text, never=never))
        if UNKNOWN in cells:
            unknown.setdefault(why, []).append(name.lstrip("… "))
        rows.append((name, *cells))
    rows += [*_layer(trial), *_same_quality(trial)]
    note = "; ".join(f"{', '.join(names)}: {why}" for why, names in unknown.items())
    return Table(
        "arms", "The arms in numbers", ("Figure", *(arm.name for arm in arms)), rows,
        note=f"{UNKNOWN} is unknown. {note}." if note else "",
    )  # fmt: skip


def _figure(value: Any, as_text: Callable[[float], str], *, never: bool) -> str:
    """A cell; ``never`` where the arm cannot have such a figure."""
    if never and not value:
        return "none"
    return interval(value, as_text) if isinstance(value, tuple) else shown(value, as_text)


def _layer(trial: TrialReport) -> list[Row]:
    """How many times faster than what is on a candidate on top of it is, beside that candidate."""
    layer = trial.judged.layer
    if not layer:
        return []
    gain = f"{ratio(layer.estimate)}\n({interval(layer.interval, ratio)})"
    cells = (gain if arm.name == trial.candidate else "" for arm in trial.judged.arms)
    return [(f"Faster than {layer.on}, which is on", *cells)]


def _same_quality(trial: TrialReport) -> list[Row]:
    """What a run costs up to the loss that both arms reach, if curves show it."""
    same = trial.judged.saving.same_quality if trial.judged.saving else None
    if same is None:
        return []
    sides = {
        BASELINE: (same.steps_baseline, same.usd_baseline),
        trial.candidate: (same.steps_candidate, same.usd_candidate),
    }
    cells = []
    for arm in trial.judged.arms:
        if arm.name not in sides:
            cells.append(UNKNOWN)
            continue
        steps, usd = sides[arm.name]
        cells.append("not reached" if steps is None else shown(usd, money))
    return [(SAME_QUALITY, *cells)]


def _clusters(trial: TrialReport) -> list[Row]:
    """What each arm runs on, where that is not the same for all."""
    planned = {arm.name: arm for arm in trial.planned_arms}
    arms = [planned.get(arm.name) for arm in trial.judged.arms]
    cells = [f"{arm.instance_count} x {arm.instance_type}" if arm else UNKNOWN for arm in arms]
    return [("Cluster", *cells)] if len(set(cells)) > 1 else []


def times_table(trial: TrialReport) -> Table | None:
    """The largest differences in where a step's time goes."""
    if not trial.times:
        return None
    columns = ("Kernels", BASELINE, trial.times.candidate, "Difference", "Share", "Graph of each",
               "Most of it")  # fmt: skip
    return Table(
        "times", "Where the time goes", columns, rows("times", times=trial.times), stacked=True,
        note=paragraph("times_note", times=trial.times),
    )  # fmt: skip


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
    """The plan, the evidence and its jobs; a table without rows is left out."""
    tables = [_plan_table(trial)]
    if trial.measured:
        tables += [
            _fingerprint_table(trial.measured), _blocks_table(trial.measured),
            _equivalence_table(trial.measured), _guardrails_table(trial),
            _runs_table(trial.measured), canary_table(trial.measured),
            _failures_table(trial.measured),
        ]  # fmt: skip
    return [table for table in (*tables, _jobs_table(trial)) if table.rows]


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
    gains = [arm.speedups for arm in measured.candidates]
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


def _equivalence_table(measured: Measured) -> Table:
    """What the equivalence check compared, and what of the model it did not look at."""
    faults = measured.evidence.equivalence
    checks = [
        (arm.name, check)
        for arm in measured.candidates
        for run in arm.arm.runs
        if (check := run.check) is not None
    ]
    listed = []
    for arm, check in checks:
        bounds = faults.bounds_of(check.job_class) if faults else {}
        listed += [
            (arm, check.weights, f"{one.part} {one.arithmetic}", count(one.compared),
             shown(one.ratio, significant), shown(bounds.get(one.name), significant), one.where)
            for one in check.parts
        ]  # fmt: skip
        listed += [
            (arm, check.weights, one.part, UNKNOWN, UNKNOWN, UNKNOWN,
             f"{percent(one.share)} not looked at: {one.code}")
            for one in check.unseen
        ]  # fmt: skip
    columns = ("Arm", "Weights", "Part", "Tensors", "Ratio", "Bound", "Where")
    note = "Ratio: the compiled model's error over the uncompiled one's, both against float64."
    return Table("equivalence", "The equivalence check", columns, listed, note=note, stacked=True)


def _guardrails_table(trial: TrialReport) -> Table:
    """The further metrics that were judged on the same runs, and what came of each."""
    quality = trial.judged.quality
    listed = [
        (name, one)
        for name in ("guardrails", "signals")
        for one in (getattr(quality, name) if quality else ())
    ]
    rows = [
        (one.metric, name.removesuffix("s"), shown(one.delta, statements.with_sign),
         statements.bounds(one.delta_interval, statements.with_sign) or UNKNOWN,
         significant(one.margin), OUTCOMES.get(one.outcome, "not proven"))
        for name, one in listed
    ]  # fmt: skip
    columns = ("Metric", "As", "Difference", "Interval", "Margin", "Answer")
    return Table(
        "guardrails", "Guardrails and signals", columns, rows, stacked=True,
        note="Differences are candidate minus baseline. A promotion needs every guardrail to hold.",
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
            run.reason or ("production" if run.stage == PROBATION else ""),
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
    every = [(arm.name, run) for arm in measured.arms for run in arm.arm.quality]
    runs = [(name, run) for name, run in every if run.mode != "shadow"]
    rows = [
        (shown(run.record.get("started_at"), bare_minute), name, metric_cell(run),
         shown(run.usd, money), RUN_MODES[run.mode], run.job or UNKNOWN)
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
        (arm.name, str(n), block.run.reason or "no reason was recorded")
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
        place
        for place, key in enumerate(keys)
        if len({text for values in prints for text in values.get(key, [UNKNOWN])}) > 1
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
        for key, value in run.fingerprint.items():
            text = UNKNOWN if value is None else str(value)
            if text not in values.setdefault(str(key), []):
                values[str(key)].append(text)
    return values


# Beside the figures: who and when, how it was measured, what to do next, and earlier trials.

MOST_JOBS = 100
CSV_COLUMNS = (
    "arm", "stage", "block", "order", "seed", "mode", "job", "finished", "applied", "metric",
    "wall_seconds", "compile_seconds", "steps", "samples_per_step", "usd",
)  # fmt: skip


def facts(trial: TrialReport) -> list[Row]:
    """Owner, beginning, machines and image; what is not recorded is left out."""
    started = trial.plan.started_at if trial.plan else 0
    began = started or _began(trial.source["context"]["trial"])
    return rows("facts", trial=trial, began=began)


def next_command(trial: TrialReport) -> tuple[str, str]:
    """What to type next, and what for."""
    ((command, why),) = rows("next", trial=trial)
    of_the_cloud = trial.verdict is not Verdict.INELIGIBLE
    stage = trial.source["context"]["stage"]
    return command_at(command, stage) if of_the_cloud else command, why


def places(trial: TrialReport) -> list[Row]:
    """Where records, flag and execution are: links, or the cloud's own names on this machine."""
    return rows("places", trial=trial, link=link, console=console, record_key=naming.record_key)


def _jobs_table(trial: TrialReport) -> Table:
    """Every training job of the evidence with the arms that it measured, its page and its log."""
    arms_of: dict[str, list[str]] = {}
    for arm in trial.evidence.arms if trial.evidence else ():
        for job in dict.fromkeys(run.job for run in arm.runs if run.job):
            arms_of.setdefault(job, []).append(arm.name)
    listed = rows(
        "jobs", jobs=list(arms_of.items())[:MOST_JOBS], context=trial.source["context"],
        link=link, console=console, local_stage=LOCAL_STAGE,
    )  # fmt: skip
    more = len(arms_of) - MOST_JOBS
    return Table(
        "jobs", "Training jobs and their logs", ("Job", "Arms", "Log"), listed, stacked=True,
        note=f"{more} more are in the evidence." if more > 0 else "",
    )  # fmt: skip


def earlier_table(trial: TrialReport) -> Table | None:
    """This trial and those of the same workload before it."""
    if not trial.earlier or trial.on_probation:
        return None
    now = (trial.source["context"]["trial"], trial.decision, trial.claims)
    trials = [_trial_row(*one) for one in (now, *trial.earlier)]
    columns = ("Trial", "Begun (UTC)", "Verdict", "Candidate", "Speed-up", "Quality",
               "Saving", "Because")  # fmt: skip
    return Table(
        "earlier", "Trials of this workload", columns, trials, marked=frozenset({0}), stacked=True,
        note="The marked row is this trial.",
    )  # fmt: skip


def _began(trial: str) -> float | None:
    """Epoch seconds at which a trial's id was made; None for a text that is no id."""
    is_id = len(trial) == naming.TRIAL_ID_LENGTH and set(naming.RETRY_DIGITS).issuperset(trial)
    return int(trial, 36) / 1000 if is_id else None


def _trial_row(name: str, decision: Decision | None, claims: Claims) -> tuple[str, ...]:
    when = shown(_began(name), bare_minute)
    if decision is None:
        words = "it ended without a decision, or that cannot be read"
        return (name, when, VERDICTS["failed"].text, *(UNKNOWN,) * 4, words)
    return (
        name,
        when,
        verdict_label(decision.verdict).text,
        decision.candidate or UNKNOWN,
        statements.speedup(decision.speedup),
        statements.quality(decision.quality, claims),
        statements.saving(decision.saving, claims),
        next(iter(decision.messages), UNKNOWN),
    )


def runs_csv(trial: TrialReport) -> str:
    """Every block and every full run of the evidence, a line each; empty where there is none."""
    lines = []
    for arm in trial.evidence.arms if trial.evidence else ():
        for run in arm.runs:
            line: dict[str, object] = {"arm": arm.name, "stage": "speed"}
            line |= {name: getattr(run, name) for name in CSV_COLUMNS if hasattr(run, name)}
            if isinstance(run, SpeedRun):
                line["steps"] = len(run.step_seconds)
            lines.append(line)
    return csv_text(CSV_COLUMNS, lines)


# How a trial was measured: arms, rounds and thresholds, and which full runs production made.


@dataclass(frozen=True)
class Spent:
    """USD and GPU-hours (hours of the cluster times its devices); None where not all is known."""

    usd: float | None
    gpu_hours: float | None


@dataclass(frozen=True)
class FullRuns:
    """Who made the full runs, at what price, and what production was exposed to.

    ``extra`` is what they cost beyond production's own training: of its runs only a lost candidate
    counts, because production repeated that run. ``made_by`` and ``exposed`` are sentences.
    """

    runs: Sequence[tuple[str, FullRun]]
    made_by: str
    extra: Spent
    production: Spent
    exposed: str

    def counts(self, *modes: str) -> str:
        """``baseline 3, compile 2 as canary``."""
        counts = Counter((name, run.mode) for name, run in self.runs if run.mode in modes)
        return ", ".join(
            f"{name} {runs}" + (f" {RUN_MODES[mode]}" if mode != SHADOW else "")
            for (name, mode), runs in counts.items()
        )


def protocol(trial: TrialReport) -> list[Row]:
    """How it was measured, as name and value; what never happened is left out."""
    arms = trial.measured.arms if trial.measured else ()
    return rows(
        "protocol", trial=trial, arm_runs=[text for arm in arms if (text := _arm_runs(arm))],
        lengths=[len(block.run.step_seconds) for arm in arms for block in arm.blocks.values()],
        runs=_full_runs(trial, trial.evidence) if trial.evidence else None,
    )  # fmt: skip


def _arm_runs(arm: MeasuredArm) -> str:
    """``compile 3 (seeds 17 to 19)``, empty where it has none."""
    runs = arm.compared
    seeds = sorted({run.seed for run in runs if run.seed is not None})
    if not runs or len(seeds) < len(runs):
        return f"{arm.name} {len(runs)}" if runs else ""
    listed = ", ".join(map(str, seeds))
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        listed = f"{seeds[0]} to {seeds[-1]}"
    return f"{arm.name} {len(runs)} ({'seed' if len(seeds) == 1 else 'seeds'} {listed})"


def full_runs(trial: TrialReport) -> dict[str, Any] | None:
    """The same for programs; None where the trial made every run itself, as policy asks."""
    evidence = trial.evidence
    if evidence is None:
        return None
    made = _full_runs(trial, evidence)
    if not made.made_by:
        return None
    modes = Counter(run.mode for _, run in made.runs)
    return {
        "asked": evidence.plan.asked_quality_runs or evidence.policy.quality_runs,
        "used": evidence.policy.quality_runs,
        "made_by": made.made_by,
        "extra": {"runs": modes[SHADOW], **asdict(made.extra)},
        "production": {"runs": modes.total() - modes[SHADOW], **asdict(made.production)},
        "exposed": made.exposed,
    }


def _full_runs(trial: TrialReport, evidence: Evidence) -> FullRuns:
    runs = [(arm.name, run) for arm in evidence.arms for run in arm.quality]
    asked, used = evidence.plan.asked_quality_runs, evidence.policy.quality_runs
    plain = not runs or (asked in (None, used) and used == SHADOW)
    why = evidence.plan.runs_as_shadow_because
    extra = [(name, run) for name, run in runs if run.mode == SHADOW or _is_lost(name, run)]
    production = [
        (name, run) for name, run in runs if run.mode != SHADOW and not _is_lost(name, run)
    ]
    made = sum(name != BASELINE and run.mode == CANARY and run.finished for name, run in runs)
    return FullRuns(
        runs,
        "" if plain else paragraph("made_by", asked=asked, used=used, why=why),
        _sum(evidence, [(name, trial.usd_by_job.get(run.job)) for name, run in extra]),
        _sum(evidence, [(name, run.usd) for name, run in production]),
        paragraph("exposed", trial=trial, made=made),
    )


def _is_lost(name: str, run: FullRun) -> bool:
    return run.mode == CANARY and name != BASELINE and not run.finished


def _sum(evidence: Evidence, prices: Sequence[tuple[str, float | None]]) -> Spent:
    """Hours follow from dollars: both are of billable time, at the arm's price per hour."""
    arms = {arm.name: arm for arm in evidence.arms}
    usd, hours = [], []
    for name, price in prices:
        rate = arms[name].usd_per_hour
        if price is None or not rate:
            return Spent(None, None)
        usd.append(price)
        hours.append(price / rate * arms[name].devices)
    return Spent(math.fsum(usd), math.fsum(hours))
