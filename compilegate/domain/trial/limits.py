"""Limits that hold while a trial runs: its money, its rounds, the state machine's time.

However long jobs may run, what is spent and every job of the round at its limit together stay
within policy.max_trial_usd.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from compilegate.domain.decision import QualityStep, RequestedFullRun, SpeedStep
from compilegate.domain.formats import money
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import ArmPlan, Cluster, SpeedJob, speed_jobs
from compilegate.domain.planning.estimate import job_hours, max_concurrency, waves
from compilegate.domain.planning.plan import RUNS_OF_A_JOB
from compilegate.domain.planning.rounds import has_room, missing_evidence
from compilegate.domain.reasons import Reason
from compilegate.domain.trial.evidence import TrialEvidence
from compilegate.domain.trial.jobs import STOP_SECONDS, EndedJob
from compilegate.domain.trial.plan import most_rounds, most_seconds
from compilegate.domain.workload.model import BASELINE, HOUR, job_seconds


@dataclass(frozen=True)
class ExpectedJob:
    """One job of a step: its cluster, that cluster's price, and the seconds that it should take."""

    cluster: Cluster
    usd_per_hour: float
    seconds: float

    @property
    def usd(self) -> float:
        """What it should cost."""
        return self.usd_per_hour * self.seconds / HOUR


@dataclass(frozen=True)
class PlannedStep:
    """The step that the judge asks for, with the jobs that it takes on what was spent so far."""

    step: SpeedStep | QualityStep
    evidence: TrialEvidence

    @property
    def is_canary(self) -> bool:
        """Whether production makes its runs."""
        return isinstance(self.step, QualityStep) and self.step.is_canary

    @cached_property
    def speed_jobs(self) -> list[SpeedJob]:
        """The jobs of a speed step: one, or one per block and group of nodes.

        Controls decide nothing: where the budget does not hold the step with them, they are left
        out.
        """
        jobs = self._with_controls
        expected = self._expected_speed(jobs)
        needed = max(self._asked_usd, _usd(expected)) + _stopping_usd(expected)
        return jobs if needed <= self._left_usd else [job for job in jobs if job.decides]

    @property
    def pair_jobs(self) -> list[tuple[RequestedFullRun, ...]]:
        """The runs of each job that makes both arms'; empty where each run has a job of its own."""
        step, apart = self.step, len(set(self.step.arms)) < 2
        if isinstance(step, SpeedStep) or apart or not self.evidence.plan.pairs:
            return []
        starts = range(0, len(step.runs), RUNS_OF_A_JOB)
        return [step.runs[start : start + RUNS_OF_A_JOB] for start in starts]

    @property
    def affordable_seconds(self) -> list[int]:
        """How long each job may take: its share of what the rest of the budget allows.

        Shares are as the jobs are expected to take, so that none is cut off before its time.
        """
        share = (self._left_usd - _stopping_usd(self._jobs)) / _usd(self._jobs)
        return [math.floor(share * job.seconds) for job in self._jobs]

    @property
    def at_once(self) -> int:
        """How many of its jobs the account's quotas let run at the same time."""
        return max_concurrency([job.cluster for job in self._jobs], self.evidence.plan.quotas.get)

    def canary_timeout_seconds(self, now: int) -> int:
        """How long the round may wait for production to make its runs."""
        workload = self.evidence.workload
        return rounds.production_timeout_seconds(
            len(self.step.arms),
            workload.schedule.runs_per_week,
            workload.training.longest_job_hours,
            elapsed_seconds=now - self.evidence.plan.started_at,
        )

    def without_silent_arms(self) -> SpeedStep | QualityStep:
        """The step without candidates of which enough jobs left nothing: they cost no more."""
        if isinstance(self.step, QualityStep):
            return self.step
        kept = tuple(arm for arm in self.step.arms if arm not in self._silent)
        return replace(self.step, arms=kept)

    def limit_met(self, ended: Iterable[EndedJob], *, rounds_done: int, now: int) -> Reason | None:
        """Why the step is not taken: it, or the last one, met a limit; None where it may be."""
        return (
            self._left_nothing()
            or self._cut_off(ended)
            or self._over_budget()
            or self._too_many_rounds(rounds_done)
            or self._over_time(now)
        )

    @property
    def _silent(self) -> list[str]:
        """Arms of a speed step of which as many speed jobs left nothing as may."""
        most, jobs_without = rounds.MOST_WITHOUT_RESULT, self.evidence.jobs_without
        if isinstance(self.step, QualityStep):
            return []
        return [arm for arm in self.step.arms if len(jobs_without(arm)) >= most]

    def _left_nothing(self) -> Reason | None:
        """Jobs without any result of the baseline, or of every candidate still measured."""
        silent = self._silent
        if not silent or (BASELINE not in silent and len(silent) < len(self.step.arms) - 1):
            return None
        return missing_evidence(silent[0], self.evidence.jobs_without(silent[0]))

    def _cut_off(self, ended: Iterable[EndedJob]) -> Reason | None:
        """A run that the budget cut off is no result, and a repetition would end the same way."""
        hours = self.evidence.workload.training.max_runtime_hours
        cut = [job.job for job in ended if job.cut_off(hours)]
        if not cut:
            return None
        return Reason(
            "trial_over_budget",
            f"{', '.join(cut)} reached a time limit below training.max_runtime_hours, set to stay "
            f"within policy.max_trial_usd ({money(self.evidence.plan.max_trial_usd)})",
        )

    def _over_budget(self) -> Reason | None:
        """The cap, on what jobs really took: no step begins that it would probably cut off."""
        spent, cap = self.evidence.spent_usd, self.evidence.plan.max_trial_usd
        needed = self._needed_usd
        if spent + needed <= cap:
            return None
        return Reason(
            "trial_over_budget",
            f"{money(spent)} is spent and the next step takes about {money(needed)}: together "
            f"more than policy.max_trial_usd ({money(cap)})",
        )

    def _too_many_rounds(self, rounds_done: int) -> Reason | None:
        """More rounds than a sound trial needs, or than one execution's history holds."""
        step, plan, jobs = self.step, self.evidence.plan, self.evidence.usd_by_job
        most = most_rounds(plan.candidates, plan.max_quality_runs, plan.quality_mode)
        if rounds_done - len(self.evidence.waited_rounds) >= most:
            return Reason("too_many_rounds", f"not decided after {most} rounds")
        most_jobs = len(step.arms)
        if isinstance(step, SpeedStep):
            most_jobs = step.blocks * len(plan.arms)
        if has_room(rounds_done, jobs, most_jobs):
            return None
        return Reason(
            "too_many_rounds",
            f"not decided after {len(jobs)} jobs in {rounds_done} rounds, and one more round "
            "might not fit into the history of one execution of Step Functions",
        )

    def _over_time(self, now: int) -> Reason | None:
        """A round that the state machine's limit might cut off would leave nothing decided."""
        plan, workload = self.evidence.plan, self.evidence.workload
        elapsed, most = now - plan.started_at, most_seconds(plan.quality_mode)
        hours = workload.training.longest_job_hours
        if self.is_canary:
            runs, per_week = len(self.step.arms), workload.schedule.runs_per_week
            needed = rounds.production_seconds(runs, per_week, hours)
            limit = f"{runs} runs of production, of which a week has {per_week:g}"
        else:
            turns = waves(len(self._jobs), self.at_once)
            needed = rounds.round_seconds(hours, turns)
            spot = ", waiting for spot capacity included" if workload.training.spot else ""
            in_turn = f"{turns} jobs in turn within the quota, each" if turns > 1 else "each job"
            limit = f"{in_turn} {hours:g} hours{spot}, queueing and waiting for the quota"
        if rounds.has_time(elapsed, needed, limit_seconds=most):
            return None
        return Reason(
            "trial_over_time",
            f"not decided after {elapsed / rounds.DAY:.0f} days, and one more round of up to "
            f"{needed / HOUR:.0f} hours ({limit}) might not end within the "
            f"{most / rounds.DAY:.0f} days that a trial may take",
        )

    @property
    def _left_usd(self) -> float:
        return self.evidence.plan.max_trial_usd - self.evidence.spent_usd

    @property
    def _needed_usd(self) -> float:
        """What the step takes of the budget, stopping its jobs included.

        Of canary runs only a candidate that fails costs the trial anything: its run is made again
        with the baseline. So much has to be left.
        """
        if self.is_canary:
            return _usd(self._expected([arm for arm in self.step.arms if arm != BASELINE][:1]))
        jobs, asked = self._jobs, self._asked_usd
        if isinstance(self.step, SpeedStep):  # its price includes the controls
            asked *= _usd(jobs) / _usd(self._expected_speed(self._with_controls))
        return max(asked, _usd(jobs)) + _stopping_usd(jobs)

    @property
    def _asked_usd(self) -> float:
        """The step's own price; where the judge knows none, the plan's upper one."""
        step, plan = self.step, self.evidence.plan
        if step.usd is not None:
            return step.usd
        if isinstance(step, SpeedStep):
            return plan.usd_per_block * step.blocks
        return plan.usd_per_quality_run * len(step.arms)

    @cached_property
    def _with_controls(self) -> list[SpeedJob]:
        if isinstance(self.step, QualityStep):
            return []
        return speed_jobs(
            self.evidence.plan.arms,
            self.step.arms,
            first_block=self.step.block,
            blocks=self.step.blocks,
            control_blocks=self.evidence.control_blocks,
        )

    @cached_property
    def _jobs(self) -> list[ExpectedJob]:
        """Its jobs as they should take, which run side by side."""
        if isinstance(self.step, SpeedStep):
            return self._expected_speed(self.speed_jobs)
        if self.pair_jobs:
            own, hours = self.evidence.plan.baseline, self.evidence.workload.schedule.run_hours
            return self._within_limit((own, len(runs) * hours * HOUR) for runs in self.pair_jobs)
        return self._expected(self.step.arms)

    def _expected(self, names: Iterable[str]) -> list[ExpectedJob]:
        """Full runs as planned: a dearer cluster gets them only once it is faster by its price."""
        plan, hours = self.evidence.plan, self.evidence.workload.schedule.run_hours
        arms, own = [plan.arm(name) for name in names], plan.baseline.usd_per_hour
        return self._within_limit(
            (arm, hours * HOUR * min(1.0, own / arm.usd_per_hour)) for arm in arms
        )

    def _expected_speed(self, jobs: Sequence[SpeedJob]) -> list[ExpectedJob]:
        hours = self.evidence.workload.schedule.run_hours
        return self._within_limit((job.arms[0], job_hours(job, hours) * HOUR) for job in jobs)

    def _within_limit(self, jobs: Iterable[tuple[ArmPlan, float]]) -> list[ExpectedJob]:
        """Jobs of so many seconds, each on an arm's cluster and none beyond its time limit."""
        most = job_seconds(self.evidence.workload.training.max_runtime_hours)
        return [ExpectedJob(arm.cluster, arm.usd_per_hour, min(took, most)) for arm, took in jobs]


def _usd(jobs: Iterable[ExpectedJob]) -> float:
    return math.fsum(job.usd for job in jobs)


def _stopping_usd(jobs: Iterable[ExpectedJob]) -> float:
    """What it costs to stop them: a job is billed until it has ended."""
    return math.fsum(job.usd_per_hour * STOP_SECONDS / HOUR for job in jobs)
