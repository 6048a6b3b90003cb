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
from compilegate.usecases.outcome import ENDED, look_up
from compilegate.usecases.stop_jobs import stop_as_own, withdraw
from compilegate.usecases.trial import Trial, open_trial

# What the judge says of a candidate that has lost, whatever its other runs bring. That it can
# no longer be proven is none: which run ended first would then have a say in the verdict.
LOST = ("quality_worse", "candidate_crashed")


def stop_settled_arms(
    event: Mapping[str, Any], outcome: Mapping[str, Any], *, services: Services, judge: Judge
) -> list[int]:
    """Stop or withdraw the round's jobs of arms that are settled; returns those arms' indexes.

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
        outcome if run == outcome["run"] else look_up(run, job, services)
        for run, (job, status) in jobs.items()
        if status in ENDED
    ]
    decision = judge_with(outcomes, load_evidence(opened), opened, judge)
    under_test = {arm for run in jobs if (arm := naming.parse_run(run).arm_index)}
    names = [str(arm["name"]) for arm in opened.plan["arms"]]
    settled = _settled(decision, under_test, names)
    lost_jobs = [
        job
        for run, (job, status) in jobs.items()
        if status == IN_PROGRESS and naming.parse_run(run).arm_index in settled
    ]
    waiting = [
        run
        for run in event["runs"]
        if run["run"] not in jobs and naming.parse_run(run["run"]).arm_index in settled
    ]
    withdraw(waiting, trial, services=services)
    stop_as_own(lost_jobs, trial, services=services)
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

    Only a loss stops a run: a candidate that looks good is held to all the runs asked for. The
    baseline's are still wanted while any candidate is left.
    """
    if decision.verdict in (Verdict.STAY_OFF, Verdict.INVALID):
        return set(range(len(names)))
    lost = [reason.message for reason in decision.reasons if reason.code in LOST]
    return {
        index
        for index in under_test
        if any(message.startswith(f"{names[index]}: ") for message in lost)
    }
