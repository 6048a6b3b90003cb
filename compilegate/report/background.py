"""Beside the figures: who and when, how it was measured, what to do next, and earlier trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compilegate.domain import console, naming
from compilegate.domain.claims import LOCAL_STAGE, VERDICTS, command_at, verdict_label
from compilegate.domain.decision import CANARY, SHADOW, Decision, Verdict
from compilegate.domain.formats import UNKNOWN, money, number, shown, significant
from compilegate.domain.judging.evidence import Evidence, FullRun
from compilegate.domain.utc import bare_minute
from compilegate.domain.workload.model import BASELINE
from compilegate.report import statements
from compilegate.report.markup import csv_text, link
from compilegate.report.measured import Measured, MeasuredArm, compared_runs, usd_of
from compilegate.report.tables import RUN_MODES, Table
from compilegate.report.text import Row, paragraph, rows
from compilegate.report.trial_report import TrialReport

MOST_JOBS = 100
CSV_COLUMNS = (
    "arm", "stage", "block", "order", "seed", "mode", "job", "finished", "applied", "metric",
    "wall_seconds", "compile_seconds", "steps", "samples_per_step", "usd",
)  # fmt: skip


def facts(trial: TrialReport) -> list[Row]:
    """Owner, beginning, machines and image; what is not recorded is left out."""
    began = (trial.plan and trial.plan.started_at) or _began(trial.source["context"]["trial"])
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


def jobs_table(trial: TrialReport) -> Table | None:
    """Every training job of the evidence with its page and its log."""
    jobs = _jobs(trial)
    if not jobs:
        return None
    shown_jobs = [
        (page, ", ".join(arms), log)
        for job, arms in list(jobs.items())[:MOST_JOBS]
        for page, log in [_job_and_log(trial, job)]
    ]
    more = len(jobs) - MOST_JOBS
    return Table(
        "jobs", "Training jobs and their logs", ("Job", "Arms", "Log"), shown_jobs,
        stacked=True,
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


def _job_and_log(trial: TrialReport, job: str) -> tuple[str, str]:
    context = trial.source["context"]
    region, local = context.get("region"), f"compilegate local logs job/{job}"
    if not region:
        return job, local if context["stage"] == LOCAL_STAGE else UNKNOWN
    page, log = console.training_job(region, job), console.training_log(region, job)
    return link(page, job), link(log, "CloudWatch")


def earlier_table(trial: TrialReport) -> Table | None:
    """This trial and those of the same workload before it."""
    earlier = trial.source.get("earlier") or ()
    if not earlier or trial.on_probation:
        return None
    now = (trial.source["context"]["trial"], trial.decision)
    trials = [_trial_row(name, decision) for name, decision in (now, *earlier)]
    columns = ("Trial", "Begun (UTC)", "Verdict", "Candidate", "Speed-up", "Quality",
               "Saving", "Because")  # fmt: skip
    return Table(
        "earlier", "Trials of this workload", columns, trials, marked=frozenset({0}), stacked=True,
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


@dataclass(frozen=True)
class Spent:
    """USD and GPU-hours (hours of the cluster times its devices); None where not all is known."""

    usd: float | None
    gpu_hours: float | None

    @property
    def words(self) -> str:
        """Both figures, a dash where one is unknown."""
        return f"{shown(self.usd, money)} and {shown(self.gpu_hours, significant)} GPU-hours"


@dataclass(frozen=True)
class FullRuns:
    """Who made the full runs, at what price, and what production was exposed to.

    ``extra`` is what they cost beyond production's own training: of its runs only a lost candidate
    counts, because production repeated that run. ``made_by`` and ``exposed`` are sentences.
    """

    runs: Sequence[tuple[str, FullRun]]
    made_by: str
    extra: Spent
    carried: Spent
    exposed: str

    @property
    def of_production(self) -> bool:
        """Whether production made any of them."""
        return any(run.mode != SHADOW for _, run in self.runs)

    def counts(self, *modes: str) -> str:
        """``baseline 3, compile 2 as canary``."""
        counts = Counter((name, run.mode) for name, run in self.runs if run.mode in modes)
        return ", ".join(
            f"{name} {runs}" + (f" {RUN_MODES[mode]}" if mode != SHADOW else "")
            for (name, mode), runs in counts.items()
        )


def protocol(trial: TrialReport) -> list[Row]:
    """How it was measured, as name and value; what never happened is left out."""
    measured, longest = trial.measured, 0
    if measured and measured.has_speed:
        blocks = (block for arm in measured.arms for block in arm.blocks.values())
        longest = max(len(block.run.step_seconds) for block in blocks)
    arms = [_arm_runs(measured, arm) for arm in measured.arms] if measured else []
    return rows(
        "protocol", trial=trial, longest=longest, arm_runs=[text for text in arms if text],
        runs=_full_runs(trial, trial.evidence) if trial.evidence else None,
    )  # fmt: skip


def _arm_runs(measured: Measured, arm: MeasuredArm) -> str:
    """``compile 3 (seeds 17 to 19)``, empty where it has none."""
    runs = compared_runs(measured, arm)
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
    made = _full_runs(trial, evidence) if evidence else None
    if made is None or evidence is None or not made.made_by:
        return None
    modes = Counter(run.mode for _, run in made.runs)
    return {
        "asked": evidence.plan.asked_quality_runs or evidence.policy.quality_runs,
        "used": evidence.policy.quality_runs,
        "made_by": made.made_by,
        "extra": {"runs": modes[SHADOW], **asdict(made.extra)},
        "carried": {"runs": modes.total() - modes[SHADOW], **asdict(made.carried)},
        "exposed": made.exposed,
    }


def _full_runs(trial: TrialReport, evidence: Evidence) -> FullRuns:
    runs = [(arm.name, run) for arm in evidence.arms for run in arm.quality]
    asked, used = evidence.plan.asked_quality_runs, evidence.policy.quality_runs
    plain = not runs or (asked in (None, used) and used == SHADOW)
    why = evidence.plan.runs_as_shadow_because
    plan: Mapping[str, Any] = (trial.source["evidence"] or {}).get("plan") or {}
    prices = plan.get("usd_by_job") or {}
    extra = [(name, run) for name, run in runs if run.mode == SHADOW or _is_lost(name, run)]
    carried = [(name, run) for name, run in runs if run.mode != SHADOW and not _is_lost(name, run)]
    made = sum(name != BASELINE and run.mode == CANARY and run.finished for name, run in runs)
    return FullRuns(
        runs,
        "" if plain else paragraph("made_by", asked=asked, used=used, why=why),
        _sum(evidence, [(name, number(prices.get(run.job))) for name, run in extra]),
        _sum(evidence, [(name, usd_of(run)) for name, run in carried]),
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
