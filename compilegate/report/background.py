"""Beside the figures: who and when, how it was measured, what to do next, and earlier trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from markupsafe import Markup

from compilegate.domain import console, naming
from compilegate.domain.claims import LOCAL_STAGE, VERDICTS, command_at, verdict_label
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.formats import UNKNOWN, money, number, shown, significant
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.utc import bare_minute, minute
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements, wording
from compilegate.report.markup import csv_text, link
from compilegate.report.measured import Measured, MeasuredArm, compared_runs, usd_of
from compilegate.report.tables import RUN_MODES, Table
from compilegate.report.trial_report import TrialReport

say = partial(wording.say, "protocol")

MOST_JOBS = 100
CSV_COLUMNS = (
    "arm", "stage", "block", "order", "seed", "mode", "job", "finished", "applied", "metric",
    "wall_seconds", "compile_seconds", "steps", "samples_per_step", "usd",
)  # fmt: skip


def facts(trial: TrialReport) -> list[tuple[str, str]]:
    """Owner, beginning, machines and image; what is not recorded is left out."""
    context, arms = trial.source["context"], trial.planned_arms
    began = (trial.plan and trial.plan.started_at) or _began(context["trial"])
    rows = [
        ("Owner", context.get("owner") or ""),
        ("Begun", minute(began) if began else ""),
        ("Machines", f"{arms[0].instance_count} x {arms[0].instance_type}" if arms else ""),
        ("Image", arms[0].image.rpartition("/")[2] if arms else ""),
    ]
    return [(name, value) for name, value in rows if value]


def next_command(trial: TrialReport) -> tuple[str, str]:
    """What to type next, and what for."""
    workload, file = trial.workload, f"{trial.workload}.yaml"
    match trial.verdict:
        case Verdict.PROMOTE | Verdict.PERMANENT:
            command, why = f"compilegate flag show {workload}", "what production trains from now on"
        case Verdict.REVERT:
            command, why = f"compilegate report {workload} --history --open", "what led to it"
        case Verdict.CONTINUE:
            command, why = f"compilegate status {workload}", "how far it is"
        case Verdict.INELIGIBLE:
            return f"compilegate check {file}", "once the workload file has changed"
        case _:
            command, why = f"compilegate run {file}", "once what this page names has changed"
    return command_at(command, trial.source["context"]["stage"]), why


def places(trial: TrialReport) -> list[tuple[str, str | Markup]]:
    """Where records, flag and execution are: links, or the cloud's own names on this machine."""
    context, plan = trial.source["context"], trial.plan
    region, bucket = context.get("region"), context.get("bucket")
    keys = [
        (name, naming.record_key(trial.workload, context["trial"], record))
        for name, record in (("Decision", "decision"), ("Evidence", "evidence"), ("Plan", "plan"))
        if trial.source[record] and not trial.on_probation  # type: ignore[literal-required]
    ]
    if plan and plan.spec_key:
        keys.append(("Workload file, as it was measured", plan.spec_key))
    rows: list[tuple[str, str | Markup]] = []
    for name, key in keys if bucket else ():
        uri = f"s3://{bucket}/{key}"
        rows.append(
            (name, link(console.s3_object(region, str(bucket), key), uri) if region else uri)
        )
    flag = trial.decision.flag.name if trial.decision and trial.decision.flag else ""
    if flag:
        rows.append(("Flag", link(console.parameter(region, flag), flag) if region else flag))
    if plan and plan.execution.startswith("arn:"):
        name = plan.execution.rpartition(":")[2]
        uri = console.execution(region, plan.execution) if region else ""
        rows.append(("Execution", link(uri, name) if uri else name))
    return rows


def jobs_table(trial: TrialReport) -> Table | None:
    """Every training job of the evidence with its page and its log."""
    jobs = _jobs(trial)
    if not jobs:
        return None
    rows = [
        (_job(trial, job), ", ".join(arms), _log(trial, job))
        for job, arms in list(jobs.items())[:MOST_JOBS]
    ]
    more = len(jobs) - MOST_JOBS
    return Table(
        "jobs", "Training jobs and their logs", ("Job", "Arms", "Log"), rows, stacked=True,
        note=f"{more} more are in the evidence." if more > 0 else "",
    )  # fmt: skip


def _jobs(trial: TrialReport) -> Mapping[str, list[str]]:
    """Each job with the arms that it measured."""
    jobs: dict[str, list[str]] = {}
    for arm in trial.evidence.arms if trial.evidence else ():
        for run in arm.runs:
            arms = jobs.setdefault(run.job, [])
            if arm.name not in arms:
                arms.append(arm.name)
    return {job: arms for job, arms in jobs.items() if job}


def _job(trial: TrialReport, job: str) -> str:
    region = trial.source["context"].get("region")
    return link(console.training_job(region, job), job) if region else job


def _log(trial: TrialReport, job: str) -> str:
    context = trial.source["context"]
    region = context.get("region")
    if region:
        return link(console.training_log(region, job), "CloudWatch")
    return f"compilegate local logs job/{job}" if context["stage"] == LOCAL_STAGE else UNKNOWN


def earlier_table(trial: TrialReport) -> Table | None:
    """This trial and those of the same workload before it."""
    earlier = trial.source.get("earlier") or ()
    if not earlier or trial.on_probation:
        return None
    now = (trial.source["context"]["trial"], trial.decision)
    rows = [_trial_row(name, decision) for name, decision in (now, *earlier)]
    columns = ("Trial", "Begun (UTC)", "Verdict", "Candidate", "Speed-up", "Quality",
               "Saving", "Because")  # fmt: skip
    return Table(
        "earlier", "Trials of this workload", columns, rows, marked=frozenset({0}), stacked=True,
        note="The marked row is this trial.",
    )  # fmt: skip


def _began(trial: str) -> float | None:
    """Epoch seconds at which a trial's id was made; None for a text that is no id."""
    is_id = len(trial) == naming.TRIAL_ID_LENGTH and set(trial) <= set(naming.RETRY_DIGITS)
    return int(trial, 36) / 1000 if is_id else None


def _trial_row(name: str, decision: Decision | None) -> tuple[str, ...]:
    began = _began(name)
    when = UNKNOWN if began is None else bare_minute(began)
    if decision is None:
        words = "it ended without a decision, or that cannot be read"
        return (name, when, VERDICTS["failed"].text, *(UNKNOWN,) * 4, words)
    return (
        name,
        when,
        verdict_label(decision.verdict).text,
        decision.candidate or UNKNOWN,
        statements.speedup(decision.speedup),
        statements.quality(decision),
        statements.saving(decision),
        next(iter(decision.messages), UNKNOWN),
    )


def runs_csv(trial: TrialReport) -> str:
    """Every block and every full run of the evidence, a line each; empty where there is none."""
    return csv_text(CSV_COLUMNS, list(_csv_rows(trial)))


def _csv_rows(trial: TrialReport) -> Iterator[dict[str, object]]:
    for arm in trial.evidence.arms if trial.evidence else ():
        for run in arm.runs:
            row: dict[str, object] = {
                "arm": arm.name, "job": run.job, "finished": run.finished, "applied": run.applied,
                "usd": usd_of(run),
            }  # fmt: skip
            if isinstance(run, FullRun):
                row |= {"stage": run.stage, "order": run.order, "seed": run.seed, "mode": run.mode}
                row |= {"metric": run.metric, "wall_seconds": run.wall_seconds}
            else:
                row |= {"stage": "speed", "block": run.block, "steps": len(run.step_seconds)}
                row |= {"compile_seconds": run.compile_seconds}
                row |= {"samples_per_step": run.samples_per_step}
            yield row


# How a trial was measured: arms, rounds and thresholds, and which full runs production made.

SHADOW, CANARY, PRODUCTION = RUN_MODES


@dataclass(frozen=True)
class Spent:
    """USD and GPU-hours (hours of the cluster times its devices); None where not all is known."""

    usd: float | None
    gpu_hours: float | None

    @property
    def words(self) -> str:
        """Both figures, a dash where one is unknown."""
        return f"{shown(self.usd, money)} and {shown(self.gpu_hours, significant)} GPU-hours"


def protocol(trial: TrialReport) -> list[tuple[str, str]]:
    """How it was measured, as name and value; what never happened is left out."""
    context = trial.source["context"]
    rows = [
        ("Speed", _speed(trial)),
        ("Quality", _quality(trial)),
        *_production_rows(trial),
        ("Thresholds", _thresholds(trial)),
        ("Error rate", _error_rate(trial)),
        ("Judge", trial.judge_version),
        ("Decision", trial.decision_id),
        ("Trial", context["trial"]),
        ("Stage", context["stage"]),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value]


def _speed(trial: TrialReport) -> str:
    if isinstance(trial.measured, str) or not trial.measured.has_speed:
        return ""
    longest = max(len(b.run.step_seconds) for a in trial.measured.arms for b in a.blocks.values())
    counts = ", ".join(f"{arm.name} {len(arm.blocks)}" for arm in trial.measured.arms)
    most = trial.plan.max_blocks if trial.plan else None
    return say("speed", steps=longest, counts=counts, most=most)


def _quality(trial: TrialReport) -> str:
    """Full runs per arm, and what the past ones count for."""
    if isinstance(trial.measured, str):
        return ""
    measured = trial.measured
    runs = [text for arm in measured.arms if (text := _arm_runs(measured, arm))]
    past = len(measured.evidence.quality.history) or None
    return say("quality", runs=", ".join(runs), none=not runs, past=past)


def _arm_runs(measured: Measured, arm: MeasuredArm) -> str:
    runs = compared_runs(measured, arm)
    seeds = sorted({run.seed for run in runs if run.seed is not None})
    if not runs or len(seeds) < len(runs):
        return f"{arm.name} {len(runs)}" if runs else ""
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{arm.name} {len(runs)} (seeds {seeds[0]} to {seeds[-1]})"
    listed = ", ".join(map(str, seeds))
    return f"{arm.name} {len(runs)} ({'seed' if len(seeds) == 1 else 'seeds'} {listed})"


def _thresholds(trial: TrialReport) -> str:
    if trial.evidence is None:
        return ""
    policy = trial.evidence.policy
    return say(
        "thresholds", reject=policy.reject_speedup, promote=policy.promote_speedup,
        dollars=trial.price_ratio != 1,
    )  # fmt: skip


def _error_rate(trial: TrialReport) -> str:
    if trial.evidence is None:
        return ""
    alpha, several = trial.evidence.policy.alpha, len(trial.evidence.candidates)
    if several < 2:
        return say("error_rate", alpha=alpha)
    return say("error_rates", alpha=alpha, each=alpha / several, candidates=several)


def _production_rows(trial: TrialReport) -> Iterator[tuple[str, str]]:
    """Who made the full runs, at what price, and what production was exposed to."""
    runs = _full_runs(trial)
    yield "Full runs made by", _made_by(trial)
    if any(run.mode != SHADOW for _, run in runs):
        extra, own = _extra(trial).words, _production_cost(trial).words
        yield "Extra full runs", f"{_counts(runs, (SHADOW,)) or 'none'}; {extra}"
        yield "Canary and production runs", f"{_counts(runs, (CANARY, PRODUCTION))}; {own}"
        yield "Exposed", _exposed(trial)


def full_runs(trial: TrialReport) -> dict[str, Any] | None:
    """The same for programs; None where the trial made every run itself, as policy asks."""
    made_by, evidence = _made_by(trial), trial.evidence
    if not made_by or evidence is None:
        return None
    runs = Counter(run.mode for _, run in _full_runs(trial))
    return {
        "asked": evidence.plan.asked_quality_runs or evidence.policy.quality_runs,
        "used": evidence.policy.quality_runs,
        "made_by": made_by,
        "extra": {"runs": runs[SHADOW], **asdict(_extra(trial))},
        "carried": {"runs": runs[CANARY] + runs[PRODUCTION], **asdict(_production_cost(trial))},
        "exposed": _exposed(trial),
    }


def _full_runs(trial: TrialReport) -> list[tuple[str, FullRun]]:
    arms = trial.evidence.arms if trial.evidence else ()
    return [(arm.name, run) for arm in arms for run in arm.quality]


def _made_by(trial: TrialReport) -> str:
    """Who made the full runs where policy or the trial used another mode than shadow."""
    evidence = trial.evidence
    if evidence is None or not _full_runs(trial):
        return ""
    requested, used = evidence.plan.asked_quality_runs, evidence.policy.quality_runs
    if requested in (None, used) and used == SHADOW:
        return ""
    return say(
        "made_by_trial" if used == SHADOW else
        "made_by_production" if used == CANARY else "made_by_both",
        asked=None if requested == used else requested, why=evidence.plan.runs_as_shadow_because,
    )  # fmt: skip


def _extra(trial: TrialReport) -> Spent:
    """What the trial's full runs cost beyond production's own training.

    Of production's own runs only a lost candidate counts: production repeated that run.
    """
    plan: Mapping[str, Any] = (trial.source["evidence"] or {}).get("plan") or {}
    prices = plan.get("usd_by_job") or {}
    return _sum(trial, [
        (name, number(prices.get(run.job)))
        for name, run in _full_runs(trial)
        if run.mode == SHADOW or _is_lost(name, run)
    ])  # fmt: skip


def _production_cost(trial: TrialReport) -> Spent:
    return _sum(trial, [
        (name, usd_of(run))
        for name, run in _full_runs(trial)
        if run.mode != SHADOW and not _is_lost(name, run)
    ])  # fmt: skip


def _is_lost(name: str, run: FullRun) -> bool:
    return run.mode == CANARY and name != BASELINE and not run.finished


def _sum(trial: TrialReport, prices: Sequence[tuple[str, float | None]]) -> Spent:
    """Hours follow from dollars: both are of billable time, at the arm's price per hour."""
    arms = {arm.name: arm for arm in trial.evidence.arms} if trial.evidence else {}
    usd, hours = [], []
    for name, price in prices:
        rate = arms[name].usd_per_hour
        if price is None or not rate:
            return Spent(None, None)
        usd.append(price)
        hours.append(price / rate * arms[name].devices)
    return Spent(math.fsum(usd), math.fsum(hours))


def _counts(runs: Sequence[tuple[str, FullRun]], modes: Sequence[str]) -> str:
    counts = Counter((name, run.mode) for name, run in runs if run.mode in modes)
    return ", ".join(
        f"{name} {runs_of_mode}" + (f" {RUN_MODES[mode]}" if mode != SHADOW else "")
        for (name, mode), runs_of_mode in counts.items()
    )


def _exposed(trial: TrialReport) -> str:
    """Models that production made with a candidate before anything was proven."""
    made = sum(name != BASELINE and run.mode == CANARY and run.finished
               for name, run in _full_runs(trial))  # fmt: skip
    if not made:
        return say("no_models")
    if trial.evidence is not None and not trial.evidence.policy.hold_models:
        return say("models_not_held", models=made)
    if trial.verdict in (None, Verdict.CONTINUE):
        return say("models_held", models=made)
    if trial.verdict is Verdict.PROMOTE and not trial.flag_was_held:
        return say("models_released", models=made, candidate=trial.candidate)
    return say("models_kept", models=made)
