"""Judges a round before all of it has ended, so that what is settled costs no more.

The evidence is looked at in memory only: JudgeArms takes it in, and what it cost, once the round
has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import Decision, Verdict
from compilegate.ports import Services
from compilegate.usecases.account import IN_PROGRESS
from compilegate.usecases.judging import Judge, judge_with, load_evidence
from compilegate.usecases.take_in import COMPLETED
from compilegate.usecases.trial import Trial, open_trial


def stop_settled_arms(
    event: Mapping[str, Any], outcome: Mapping[str, Any], *, services: Services, judge: Judge
) -> list[int]:
    """Stop the round's jobs of arms that are settled; returns the indexes of those arms.

    ``event["runs"]`` are the round's runs as JudgeArms asked for them, ``outcome`` is of the one
    that has just ended.
    """
    if len(event["runs"]) < 2:
        return []
    trial = Trial.from_event(event)
    jobs = _round_jobs(trial, event, services)
    jobs[str(outcome["run"])] = (str(outcome["job"]), str(outcome["status"]))
    opened = open_trial(trial, services)
    outcomes = [
        {"run": run, "job": job, "status": COMPLETED}
        for run, (job, status) in jobs.items()
        if status == COMPLETED
    ]
    decision = judge_with(outcomes, load_evidence(opened), opened, judge)
    under_test = {arm for run in jobs if (arm := naming.parse_run(run).arm_index)}
    names = [str(arm["name"]) for arm in opened.plan["arms"]]
    settled = _settled(decision, under_test, names)
    for run, (job, status) in jobs.items():
        if status == IN_PROGRESS and naming.parse_run(run).arm_index in settled:
            services.jobs.stop(job)
    return sorted(settled)


def _round_jobs(
    trial: Trial, event: Mapping[str, Any], services: Services
) -> dict[str, tuple[str, str]]:
    """Run id → (job, status) in the round's order; of several retries the last."""
    statuses = services.jobs.statuses(naming.trial_job_prefix(trial.workload, trial.trial))
    last: dict[str, tuple[str, str]] = {}
    for job in sorted(statuses):
        run = naming.job_run(trial.workload, trial.trial, job)
        if run is not None:
            last[run.text] = (job, statuses[job])
    wanted = [str(run["run"]) for run in event["runs"]]
    return {run: last[run] for run in wanted if run in last}


def _settled(decision: Decision, under_test: Collection[int], names: list[str]) -> set[int]:
    """Arms whose further runs can no longer matter.

    Only a loss stops a run: a candidate that looks good is held to all the runs asked for. Where
    the trial goes on to another candidate, the baseline's runs are still wanted.
    """
    if decision.verdict is Verdict.PROMOTE:
        return set()
    if decision.verdict is not Verdict.CONTINUE:
        return set(range(len(names)))
    goes_on = decision.stage == "quality" and decision.candidate in names
    tested = {names[index] for index in under_test}
    return set(under_test) if goes_on and decision.candidate not in tested else set()
