"""Beside the figures: who and when, what to do next, where everything lies, and earlier trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from compilegate.domain import console, naming
from compilegate.domain.claims import LOCAL_STAGE, VERDICTS, command_at, verdict_label
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.formats import UNKNOWN
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.utc import bare_minute, minute
from compilegate.report import statements
from compilegate.report.markup import csv_text, link
from compilegate.report.measured import usd_of
from compilegate.report.tables import Table
from compilegate.report.trial_report import TrialReport

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
