"""Time to a target: how soon an arm reaches ``quality.target``, where its steps are other ones.

A larger batch or another recipe learns otherwise in a step, so that neither steps nor whole plans
tell which arm gets there first. A run reaches the target at its first evaluation at or beyond it,
unsmoothed, as a script would stop there. It was there somewhere between that evaluation and the one
before, and the arms may evaluate at other moments. So a candidate's run counts with the later of
the two, the baseline's with the earlier one, and the speed-up is what evaluations leave certain:

    D = mean(ln earlier(B)) - mean(ln later(C))

A metric that fluctuates is there by chance the sooner the more often it is looked at, so that a
candidate that evaluates more often than the baseline in a run of its plan proves nothing.

A run that misses the target is censored. The baseline's counts with its last evaluation, before
which it was not there. When the candidate's would have been there is not known, so that a candidate
that misses once is not promoted. The arms may vary each by its own, so that the variance of D is
the larger one of

    s_T^2 (1/n_C + 1/n_B)        s_C^2 / n_C + s_B^2 / n_B

with s_T pooled with the prior of walls (whole_job.py), and Student's t has the degrees of freedom
of the smaller arm, which Welch's (1947, Biometrika 34:28) never fall below. No block proves
anything here, so the looks share the error of the bound.
"""

from __future__ import annotations

import math
from itertools import takewhile

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, finished, walls
from compilegate.domain.judging.run_work import ComparableWalls, steps_of
from compilegate.domain.optional import without_none
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import BASELINE

# Changes after which a step no longer learns what the baseline's does.
OTHER_STEPS = frozenset({"batch_size", "learning_rate", "hyperparameters", "entry_point"})
# Runs of each arm that have to reach the target, before their spread is known.
LEAST_REACHED = 3
TOO_FEW = "target_few_runs"
# A last evaluation more or less is as often, and a run that costs so much more costs as much.
AS_OFTEN = AS_DEAR = 1.1


def timed_to_target(candidate: Arm, evidence: Evidence) -> bool:
    """Whether the time to a target decides on the candidate's speed, in place of whole jobs."""
    other = OTHER_STEPS & candidate.overrides.keys()
    differs = bool(other) or candidate.devices != evidence.baseline.devices
    return differs and evidence.quality.target is not None


def to_target(evidence: Evidence) -> str:
    """``eval_accuracy 0.92``."""
    return f"{evidence.quality.metric} {evidence.quality.target}"


def seconds_short(run: FullRun, evidence: Evidence) -> list[float]:
    """When each of a run's evaluations was that came before it reached the target."""
    (target,) = evidence.oriented(without_none([evidence.quality.target]))
    values = evidence.oriented([value for _, value in run.evaluations])
    short = list(takewhile(lambda value: value < target, values))
    return [seconds for seconds, _ in run.evaluations[: len(short)]]


class TimesToTarget(ComparableWalls):
    """Seconds of one arm's runs to the target, each as its evaluations leave it certain."""

    def seconds(self, run: FullRun) -> float | None:
        """None for a run that was not timed or has no such evaluation."""
        short = seconds_short(run, self._check.evidence)
        later = [seconds for seconds, _ in run.evaluations[len(short) :]]
        # A miss of the candidate took longer than this, which the watch of production has to see.
        own = short[-1:] if self._arm.name == BASELINE else (later[:1] or short[-1:])
        return own[0] if own and run.finished and run.wall_seconds else None


def log_times_to_target(arm: Arm, evidence: Evidence) -> list[float]:
    """Those of all its full runs, as ln(seconds)."""
    return list(map(math.log, TimesToTarget(arm, evidence).of(arm.full_runs)))


def _looks(arm: Arm) -> float:
    """Evaluations of a run of the arm's planned steps, on average."""
    planned, runs = arm.steps_or_one, finished(arm.quality)
    return mean([len(run.evaluations) * planned / (steps_of(run) or planned) for run in runs])


def _is_dearer(candidate: Arm, evidence: Evidence) -> bool:
    """Whether whole runs cost more than today's: those of a script that goes on at its target."""
    own, base = (walls(arm.quality) for arm in (candidate, evidence.baseline))
    ratio = mean(own) / mean(base) if own and base else 1.0
    return ratio * evidence.price_ratio(candidate) > AS_DEAR


def target_problem(candidate: Arm, evidence: Evidence) -> Reason | None:
    """What keeps times to the target from deciding; None where nothing does, or walls decide."""
    if not timed_to_target(candidate, evidence):
        return None
    arms, words = (candidate, evidence.baseline), to_target(evidence)
    runs = [finished(arm.quality) for arm in arms]
    known = [TimesToTarget(arm, evidence).of(arm.quality) for arm in arms]
    ours, theirs = (
        sum(len(seconds_short(run, evidence)) < len(run.evaluations) for run in made)
        for made in runs
    )
    counts = f"{ours} of its {len(runs[0])} runs and {theirs} of the baseline's {len(runs[1])}"
    if not all(runs):
        code, text = TOO_FEW, f"no run of each arm has been timed to {words} yet"
    elif not all(run.evaluations for made in runs for run in made):
        code, text = "target_unmeasured", "a full run recorded no evaluation"
    elif _looks(candidate) > AS_OFTEN * _looks(evidence.baseline):
        code, text = "target_unmeasured", "it is evaluated more often than the baseline"
    elif not ours + theirs:
        code, text = "target_unreached", f"no run has reached {words}"
    elif ours < len(runs[0]):
        code, text = "target_missed", f"{counts} reached {words}"
    elif list(map(len, known)) != list(map(len, runs)):
        code, text = "target_unmeasured", f"a run recorded no evaluation before {words}"
    elif _is_dearer(candidate, evidence):
        code, text = "full_run_disagrees", f"whole runs that go on after {words} cost more"
    elif min(ours, theirs) < LEAST_REACHED:
        code, text = TOO_FEW, f"{counts} reached {words}, {LEAST_REACHED} of each are needed"
    else:
        return None
    return Reason(code, f"{candidate.name}: {text}", candidate.name)
