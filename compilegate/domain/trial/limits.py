"""Limits that hold while a trial runs: its money, its rounds, the state machine's time.

However long jobs may run, what is spent and every job of the round at its limit together stay
within policy.max_trial_usd.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compilegate.domain.decision import NextStep, QualityStep, SpeedStep
from compilegate.domain.formats import money
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import Cluster, SpeedJob, speed_jobs
from compilegate.domain.planning.estimate import job_hours, max_concurrency, waves
from compilegate.domain.planning.rounds import HOUR, has_room, job_seconds
from compilegate.domain.reasons import Reason
from compilegate.domain.trial.evidence import TrialEvidence
from compilegate.domain.trial.jobs import STOP_SECONDS, EndedJob
from compilegate.domain.trial.plan import RecordedPlan, most_rounds, most_seconds
from compilegate.domain.trial.silent_arms import missing_evidence
from compilegate.domain.workload.model import BASELINE


@dataclass(frozen=True)
class ExpectedJob:
    """One job of a step: the price of its cluster per hour and the seconds it should take."""

    usd_per_hour: float
    seconds: float

    @property
    def usd(self) -> float:
        """What it should cost."""
        return self.usd_per_hour * self.seconds / HOUR

    @property
    def stopping_usd(self) -> float:
        """What it costs to stop it: it is billed until it has ended."""
        return self.usd_per_hour * STOP_SECONDS / HOUR


def limit_met(
    step: NextStep,
    evidence: TrialEvidence,
    ended: Iterable[EndedJob],
    *,
    rounds_done: int,
    now: int,
) -> Reason | None:
    """Why the step is not taken: it, or the last one, met a limit; None where it may be."""
    return (
        _left_nothing(step, evidence)
        or _cut_off(ended, evidence)
        or _over_budget(step, evidence)
        or _too_many_rounds(step, evidence, rounds_done)
        or _over_time(step, evidence, now)
    )


def without_silent_arms(step: NextStep, evidence: TrialEvidence) -> NextStep:
    """The step without candidates of which enough speed jobs left nothing: they cost no more."""
    if not isinstance(step, SpeedStep):
        return step
    silent = _silent(step, evidence)
    return replace(step, arms=tuple(arm for arm in step.arms if arm not in silent))


def chosen_speed_jobs(step: SpeedStep, evidence: TrialEvidence) -> list[SpeedJob]:
    """The jobs that a speed step takes: one, or one per block and group of nodes.

    Controls decide nothing: where the budget does not hold the step with them, they are left out.
    """
    jobs = _with_controls(step, evidence)
    expected = _expected_speed(jobs, evidence)
    stopping = math.fsum(job.stopping_usd for job in expected)
    needed = max(_step_usd(step, evidence.plan), _usd(expected)) + stopping
    if needed <= evidence.plan.max_trial_usd - evidence.spent_usd:
        return jobs
    return [job for job in jobs if job.decides]


def affordable_seconds(step: NextStep, evidence: TrialEvidence) -> list[int]:
    """How long each of the step's jobs may take: its share of what the rest of the budget allows.

    Shares are as the jobs are expected to take, so that none is cut off before its time.
    """
    jobs = _expected(step, evidence)
    left = evidence.plan.max_trial_usd - evidence.spent_usd - _stopping_usd(jobs)
    share = left / _usd(jobs)
    return [math.floor(share * job.seconds) for job in jobs]


def jobs_at_once(clusters: Sequence[Cluster], plan: RecordedPlan) -> int:
    """How many jobs of a round the account's quotas let run at the same time."""
    return max_concurrency(clusters, plan.quotas.get)


def canary_timeout_seconds(step: QualityStep, evidence: TrialEvidence, now: int) -> int:
    """How long a round may wait for production to make its runs."""
    workload = evidence.workload
    return rounds.production_timeout_seconds(
        len(step.runs),
        workload.schedule.runs_per_week,
        rounds.longest_job_hours(workload.training),
        elapsed_seconds=now - evidence.plan.started_at,
    )


def _left_nothing(step: NextStep, evidence: TrialEvidence) -> Reason | None:
    """Jobs without any result of the baseline, or of every candidate that is still measured."""
    silent = _silent(step, evidence) if isinstance(step, SpeedStep) else []
    if not silent or (BASELINE not in silent and len(silent) < len(step.arms) - 1):
        return None
    return missing_evidence(silent[0], evidence.jobs_without(silent[0]))


def _silent(step: SpeedStep, evidence: TrialEvidence) -> list[str]:
    """Arms of the step of which as many speed jobs left nothing as may."""
    most = rounds.MOST_WITHOUT_RESULT
    return [arm for arm in step.arms if len(evidence.jobs_without(arm)) >= most]


def _cut_off(ended: Iterable[EndedJob], evidence: TrialEvidence) -> Reason | None:
    """A run that the budget cut off is not a result, and a repetition would end the same way."""
    hours, plan = evidence.workload.training.max_runtime_hours, evidence.plan
    cut = [job.job for job in ended if job.cut_off(hours)]
    if not cut:
        return None
    return Reason(
        "trial_over_budget",
        f"{', '.join(cut)} reached a time limit below training.max_runtime_hours, set to stay "
        f"within policy.max_trial_usd ({money(plan.max_trial_usd)})",
    )


def _over_budget(step: NextStep, evidence: TrialEvidence) -> Reason | None:
    """The cap, on what jobs really took: no step begins that it would probably cut off."""
    spent, cap, needed = evidence.spent_usd, evidence.plan.max_trial_usd, _needed(step, evidence)
    if spent + needed <= cap:
        return None
    return Reason(
        "trial_over_budget",
        f"{money(spent)} is spent and the next step takes about {money(needed)}: together more "
        f"than policy.max_trial_usd ({money(cap)})",
    )


def _too_many_rounds(step: NextStep, evidence: TrialEvidence, rounds_done: int) -> Reason | None:
    """More rounds than a sound trial needs, or than one execution's history holds."""
    plan, jobs = evidence.plan, evidence.usd_by_job
    most = most_rounds(plan.candidates, plan.max_quality_runs, plan.quality_mode)
    if rounds_done >= most:
        return Reason("too_many_rounds", f"not decided after {most} rounds")
    if has_room(rounds_done, jobs, _most_jobs(step, plan)):
        return None
    return Reason(
        "too_many_rounds",
        f"not decided after {len(jobs)} jobs in {rounds_done} rounds, and one more round might "
        "not fit into the history of one execution of Step Functions",
    )


def _most_jobs(step: NextStep, plan: RecordedPlan) -> int:
    """The most jobs that the step may take."""
    return step.blocks * len(plan.arms) if isinstance(step, SpeedStep) else len(step.arms)


def _over_time(step: NextStep, evidence: TrialEvidence, now: int) -> Reason | None:
    """A round that the state machine's limit might cut off would leave nothing decided."""
    elapsed, most = now - evidence.plan.started_at, most_seconds(evidence.plan.quality_mode)
    needed, limit = _longest_round(step, evidence)
    if rounds.has_time(elapsed, needed, limit_seconds=most):
        return None
    return Reason(
        "trial_over_time",
        f"not decided after {elapsed / rounds.DAY:.0f} days, and one more round of up to "
        f"{needed / HOUR:.0f} hours ({limit}) might not end within the {most / rounds.DAY:.0f} "
        "days that a trial may take",
    )


def _longest_round(step: NextStep, evidence: TrialEvidence) -> tuple[int, str]:
    """Seconds that the step may take, and what they consist of."""
    workload = evidence.workload
    hours = rounds.longest_job_hours(workload.training)
    if isinstance(step, QualityStep) and step.is_canary:
        runs, per_week = len(step.runs), workload.schedule.runs_per_week
        limit = f"{runs} runs of production, of which a week has {per_week:g}"
        return rounds.production_seconds(runs, per_week, hours), limit
    clusters = _clusters(step, evidence)
    turns = waves(len(clusters), jobs_at_once(clusters, evidence.plan))
    spot = ", waiting for spot capacity included" if workload.training.spot else ""
    in_turn = f"{turns} jobs in turn within the quota, each" if turns > 1 else "each job"
    limit = f"{in_turn} {hours:g} hours{spot}, queueing and waiting for the quota"
    return rounds.round_seconds(hours, turns), limit


def _clusters(step: NextStep, evidence: TrialEvidence) -> list[Cluster]:
    if isinstance(step, SpeedStep):
        return [job.arms[0].cluster for job in chosen_speed_jobs(step, evidence)]
    return [evidence.plan.arm(name).cluster for name in step.arms]


def _needed(step: NextStep, evidence: TrialEvidence) -> float:
    """What the step takes of the budget, stopping its jobs included.

    Of canary runs only a candidate that fails costs the trial anything: its run is made again
    with the baseline. So much has to be left.
    """
    if isinstance(step, QualityStep) and step.is_canary:
        candidates = tuple(run for run in step.runs if run.arm != BASELINE)
        return _usd(_expected(replace(step, runs=candidates[:1]), evidence))
    jobs, asked = _expected(step, evidence), _step_usd(step, evidence.plan)
    if isinstance(step, SpeedStep):  # its price includes the controls
        asked *= _usd(jobs) / _usd(_expected_speed(_with_controls(step, evidence), evidence))
    return max(asked, _usd(jobs)) + _stopping_usd(jobs)


def _step_usd(step: NextStep, plan: RecordedPlan) -> float:
    """The step's own price; where the judge knows none, the plan's upper one."""
    if isinstance(step, SpeedStep):
        return plan.usd_per_block * step.blocks if step.usd is None else step.usd
    if isinstance(step, QualityStep) and step.usd is not None:
        return step.usd
    return plan.usd_per_quality_run * len(step.arms)


def _with_controls(step: SpeedStep, evidence: TrialEvidence) -> list[SpeedJob]:
    return speed_jobs(
        evidence.plan.arms,
        step.arms,
        first_block=step.block,
        blocks=step.blocks,
        control_blocks=evidence.control_blocks,
    )


def _expected(step: NextStep, evidence: TrialEvidence) -> list[ExpectedJob]:
    """The step's jobs, which run side by side."""
    if isinstance(step, SpeedStep):
        return _expected_speed(chosen_speed_jobs(step, evidence), evidence)
    workload, plan = evidence.workload, evidence.plan
    most, hours = job_seconds(workload.training.max_runtime_hours), workload.schedule.run_hours
    own = plan.arm(BASELINE).usd_per_hour
    # As planned: a dearer cluster gets full runs only once it is faster by its price.
    return [
        ExpectedJob(rate, min(hours * HOUR * min(1.0, own / rate), most))
        for rate in (plan.arm(name).usd_per_hour for name in step.arms)
    ]


def _expected_speed(jobs: Sequence[SpeedJob], evidence: TrialEvidence) -> list[ExpectedJob]:
    workload = evidence.workload
    most, hours = job_seconds(workload.training.max_runtime_hours), workload.schedule.run_hours
    return [ExpectedJob(job.usd_per_hour, min(job_hours(job, hours) * HOUR, most)) for job in jobs]


def _usd(jobs: Iterable[ExpectedJob]) -> float:
    return math.fsum(job.usd for job in jobs)


def _stopping_usd(jobs: Iterable[ExpectedJob]) -> float:
    return math.fsum(job.stopping_usd for job in jobs)
