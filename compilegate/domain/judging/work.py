"""Whether full runs did the work that their wall clocks are compared for.

A short wall clock says nothing of a run that did less. Compared are, of every full run that
finished and was timed, against the baseline's:

- the steps that it did, as a share of those that its arm plans
- the steps of its summary with those of its own lines
- samples and tokens of a whole run, by the means of the steps that recorded them
- the part of the job's time, by the service's clock, that its own clock leaves out

and of the arms how many steps they plan. The baseline's runs are compared with one another. A run
on other data, as production's may be, is compared with the baseline run nearest to it in time,
less closely. Steps may differ where the workload declares ``quality.early_stopping``, and plans
where the candidate's own change does.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, data_of, finished
from compilegate.domain.outside import is_figure
from compilegate.domain.reasons import Reason

CODE = "unequal_work"
# A last batch or step more or less is the same work.
SAME_WORK = 0.02
# Tokens that are no padding vary with the order of the data, and work with the data itself.
SAME_TOKENS = OTHER_DATA = 0.1
# Seconds of a job outside its run's clock, beyond the baseline's: starting a container, installing
# packages and keeping a compile cache take as long now and then.
UNTIMED_SECONDS, UNTIMED_SHARE = 180.0, 0.05
# Changes that may plan a whole run in other steps.
OTHER_STEPS = frozenset(
    {"batch_size", "instance_type", "instance_count", "distribution", "hyperparameters",
     "entry_point"}
)  # fmt: skip

Figure = Callable[[FullRun], float | None]


def unequal_work(candidate: Arm, evidence: Evidence) -> Iterator[Reason]:
    """The first sign that the arms' whole runs are not the same work."""
    baseline = evidence.baseline
    problems = [
        *_plans(candidate, baseline),
        *_blocks(candidate, baseline),
        *(problem for arm in (candidate, baseline) for problem in _runs(arm, evidence)),
    ]
    if problems:
        yield Reason(CODE, f"{candidate.name}: {problems[0]}", candidate.name)


def unequal_runs(arm: Arm, evidence: Evidence) -> frozenset[int]:
    """The orders of the arm's runs in production whose wall clocks say nothing."""
    check = _Check(arm, evidence)
    return frozenset(run.order for run in timed(arm.probation) if check.problem(run))


def timed(runs: Sequence[FullRun]) -> list[FullRun]:
    """The runs whose wall clocks count, in the order of time."""
    return [run for run in finished(runs) if run.wall_seconds]


def steps_of(run: FullRun) -> float | None:
    """The steps that a run did: by its lines, else by its own word; None where unknown."""
    return (run.work and run.work.steps) or figure(run, "steps")


def figure(run: FullRun, key: str) -> float | None:
    """A figure above 0 of a run's record, None where it has none."""
    value = run.record.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not is_figure(value):
        return None
    return float(value) if value > 0 else None


def _plans(candidate: Arm, baseline: Arm) -> Iterator[str]:
    """What contradicts the steps that each arm plans for a whole run."""
    for arm in (candidate, baseline):
        plans = [run.full_run_steps for run in arm.speed if run.full_run_steps]
        if plans and not _close(min(plans), max(plans)):
            yield (
                f"the speed blocks of {arm.name} plan from {min(plans):,} to {max(plans):,} steps "
                "for one whole run"
            )
    ours, theirs = candidate.full_run_steps, baseline.full_run_steps
    undeclared = candidate.overrides and not OTHER_STEPS & candidate.overrides.keys()
    if undeclared and ours and theirs and not _close(ours, theirs):
        sizes = [
            next((run.samples_per_step for run in arm.speed if run.samples_per_step), 0.0)
            for arm in (candidate, baseline)
        ]
        if all(sizes) and _close(sizes[0] * ours, sizes[1] * theirs):
            return  # more steps of fewer samples each
        yield (
            f"it plans {ours:,} steps for a whole run and the baseline {theirs:,}, which its "
            "change does not explain"
        )


def _blocks(candidate: Arm, baseline: Arm) -> Iterator[str]:
    """Blocks in which only one arm recorded its samples or tokens, or tokens are not equal."""
    theirs = {run.block: run for run in baseline.speed if run.finished}
    for run in candidate.speed:
        other = theirs.get(run.block)
        if other is None or not run.finished:
            continue
        if (run.samples_per_step is None) != (other.samples_per_step is None):
            yield f"in block {run.block} only one of the arms recorded its samples"
        if (run.tokens_per_step is None) != (other.tokens_per_step is None):
            yield f"in block {run.block} only one of the arms recorded its tokens"
        ours, other_tokens = run.tokens_per_step, other.tokens_per_step
        if (
            ours
            and other_tokens
            and not _as_much((ours, candidate), (other_tokens, baseline), SAME_TOKENS)
        ):
            yield (
                f"block {run.block} took {ours:,.0f} tokens a step and the baseline's "
                f"{other_tokens:,.0f}"
            )


def _runs(arm: Arm, evidence: Evidence) -> Iterator[str]:
    check = _Check(arm, evidence)
    for run in timed(arm.full_runs):
        problem = check.problem(run)
        if problem is not None:
            yield problem


def _as_much(ours: tuple[float, Arm], theirs: tuple[float, Arm], tolerance: float) -> bool:
    """Whether means of a step come to the same whole run.

    Scripts may record one batch size for all arms: then the mean is the same and the plan is not.
    """
    (own, arm), (other, baseline) = ours, theirs
    planned, reference = arm.full_run_steps or 1, baseline.full_run_steps or 1
    whole = _close(own * planned, other * reference, tolerance)
    return whole or (not _close(planned, reference) and _close(own, other, tolerance))


def _close(one: float, other: float, tolerance: float = SAME_WORK) -> bool:
    return math.isclose(one, other, rel_tol=tolerance)


class _Reference:
    """One figure of the baseline's timed runs, to compare a run's with."""

    def __init__(self, baseline: Arm, of: Figure) -> None:
        self.of = of
        runs = timed(baseline.full_runs)
        self._known = [(run, value) for run in runs if (value := of(run)) is not None]
        by_data: defaultdict[str | None, list[float]] = defaultdict(list)
        for run, value in self._known:
            by_data[data_of(run)].append(value)
        self._by_data = {data: median(values) for data, values in by_data.items()}
        self._orders = [run.order for run, _ in self._known]
        # Documents of earlier releases have no work; where one of these has, all jobs recorded it.
        self.runs = len(runs)
        self.recorded = any(run.work is not None for run in runs)

    def beside(self, run: FullRun) -> tuple[float, bool] | None:
        """The figure to compare a run's with, and whether it is of the same data.

        The middle one of the same data, else that of the nearest other run in time.
        """
        same = self._by_data.get(data_of(run))
        if same is not None:
            return same, True
        if not self._known:
            return None
        after = bisect(self._orders, run.order)
        near = self._known[max(after - 1, 0) : after + 1]
        return min(near, key=lambda one: abs(one[0].order - run.order))[1], False


@dataclass(frozen=True)
class _Check:
    """Compares the timed runs of an arm, which may be the baseline, with the baseline's."""

    arm: Arm
    evidence: Evidence

    def problem(self, run: FullRun) -> str | None:
        """What keeps the run's wall clock from being compared, None where nothing does."""
        return (
            self._contradiction(run)
            or self._steps(run)
            or self._beside(run, "samples", self._samples, SAME_WORK)
            or self._beside(run, "tokens", self._tokens, SAME_TOKENS)
            or self._untimed(run)
        )

    @property
    def _ours(self) -> bool:
        return self.arm.name != self.evidence.baseline.name

    @cached_property
    def _samples(self) -> _Reference:
        return _Reference(
            self.evidence.baseline, lambda run: run.work.samples_per_step if run.work else None
        )

    @cached_property
    def _tokens(self) -> _Reference:
        return _Reference(
            self.evidence.baseline, lambda run: run.work.tokens_per_step if run.work else None
        )

    @cached_property
    def _shares(self) -> _Reference:
        planned = self.evidence.baseline.full_run_steps or 1
        return _Reference(
            self.evidence.baseline,
            lambda run: None if (steps := steps_of(run)) is None else steps / planned,
        )

    @cached_property
    def _lines(self) -> bool:
        """Whether a run of the baseline left lines of its steps."""
        return any(run.work and run.work.steps for run in self.evidence.baseline.full_runs)

    @cached_property
    def _largest_gap(self) -> float | None:
        gaps = [gap for run in timed(self.evidence.baseline.full_runs)
                if (gap := _gap(run)) is not None]  # fmt: skip
        return max(gaps, default=None)

    def _contradiction(self, run: FullRun) -> str | None:
        if run.work is None:
            return None
        own, lines = figure(run, "steps"), run.work.steps
        if not lines and self._lines:
            return f"a full run of {self.arm.name} left no lines of its steps"
        if not lines and own is None:
            return f"a full run of {self.arm.name} recorded no steps"
        if lines and own and not _close(lines, own):
            return f"a full run of {self.arm.name} says {own:,.0f} steps, its lines {lines:,}"
        return None

    def _steps(self, run: FullRun) -> str | None:
        steps, beside = steps_of(run), self._shares.beside(run)
        if steps is None:
            # Beside runs with work, one without it is an earlier release's record.
            silent = self._ours and beside is not None and not self._shares.recorded
            return f"a full run of {self.arm.name} says nothing of its steps" if silent else None
        planned = self.arm.full_run_steps
        comparable = self._shares.runs and (beside is not None or planned)
        if self.evidence.quality.early_stopping or not comparable:
            return None
        share, same = beside or (1.0, True)
        if _close(steps / (planned or 1), share, SAME_WORK if same else OTHER_DATA):
            return None
        expected = share * (planned or 1)
        return (
            f"a full run of {self.arm.name} did {steps:,.0f} steps, where {expected:,.0f} are the "
            "work of the baseline's"
        )

    def _beside(
        self, run: FullRun, what: str, reference: _Reference, tolerance: float
    ) -> str | None:
        own, beside = reference.of(run), reference.beside(run)
        if own is None:
            silent = run.work is not None and beside is not None
            return f"a full run of {self.arm.name} recorded no {what}" if silent else None
        if beside is None:
            return f"only {self.arm.name} recorded {what}" if reference.recorded else None
        other, same = beside
        allowed = tolerance if same else OTHER_DATA
        if _as_much((own, self.arm), (other, self.evidence.baseline), allowed):
            return None
        return (
            f"a full run of {self.arm.name} took {own:,.4g} {what} a step, those of the baseline "
            f"{other:,.4g}"
        )

    def _untimed(self, run: FullRun) -> str | None:
        gap, largest = _gap(run), self._largest_gap
        if not self._ours or gap is None or largest is None or run.job_seconds is None:
            return None
        if gap <= largest + max(UNTIMED_SECONDS, UNTIMED_SHARE * run.job_seconds):
            return None
        return (
            f"a full run of {self.arm.name} timed {run.wall_seconds:,.0f} of the "
            f"{run.job_seconds:,.0f} seconds of its job, the baseline's all but {largest:,.0f}"
        )


def _gap(run: FullRun) -> float | None:
    """Seconds in which a job trained by the service's clock and not by its run's own."""
    if run.job_seconds is None or not run.wall_seconds:
        return None
    return run.job_seconds - run.wall_seconds
