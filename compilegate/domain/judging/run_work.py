"""What one full run did, compared with what the baseline's runs did.

Of every full run that finished and was timed:

- the steps that it did, as a share of those that its arm plans, with runs on the same data
- the steps and seconds of its summary with those of its own lines
- samples and tokens of a whole run, by the means of all steps
- the part of the job's time, by the service's clock, that its own clock leaves out

The baseline's runs are compared with one another. Steps of a run on other data, as production's may
be, are for ``ComparableWalls``: production's data go on, and some scripts end a run by their
metric. There the time within steps is scaled to the steps of the baseline's usual run, or to the
planned ones where the workload declares ``quality.early_stopping``.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from compilegate.domain.decision import SHADOW
from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, finished
from compilegate.domain.optional import map_optional, with_known, without_none
from compilegate.domain.outside import is_figure
from compilegate.domain.workload.model import BASELINE

# A last batch or step more or less is the same work.
SAME_WORK = 0.02
# On other data a run may do fewer steps than those beside it, down to this share of them.
LEAST_NEAR = 0.9
# Tokens that are no padding vary with the order of the data.
SAME_TOKENS = 0.1
# Seconds of a job outside its run's clock, beyond the baseline's: starting a container, installing
# packages and keeping a compile cache take as long now and then. Of short jobs a tenth, always a
# minute, by which clocks may be apart (job_output.py).
UNTIMED_SECONDS, UNTIMED_SHARE, UNTIMED_OF_SHORT, LEAST_UNTIMED = 180.0, 0.05, 0.1, 60.0
# Changes of the batch or of the processes, which plan a whole run in other steps.
OTHER_BATCH = frozenset({"batch_size", "instance_type", "instance_count", "distribution"})
# Hyperparameters that say how long a run is.
LENGTH = re.compile(r"epoch|step|iter|batch|accum|sample|token", re.IGNORECASE)
Figure = Callable[[FullRun], float | None]


def timed(runs: Sequence[FullRun]) -> list[FullRun]:
    """The runs whose wall clocks count, in the order of time."""
    return [run for run in finished(runs) if run.wall_seconds]


def steps_of(run: FullRun) -> float | None:
    """The steps that a run did: by its lines, else by its own word; None where unknown."""
    if run.work is not None and run.work.steps:
        return run.work.steps
    steps = figure(run, "steps")
    return steps if steps is not None and steps >= 1 else None


def figure(run: FullRun, key: str) -> float | None:
    """A figure above 0 of a run's record, None where it has none."""
    value = run.record.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not is_figure(value):
        return None
    return float(value) if value > 0 else None


def declares_steps(candidate: Arm) -> bool:
    """Whether an arm's change says that its whole runs have other steps, or is not known."""
    changed = candidate.overrides.get("hyperparameters")
    names = changed if isinstance(changed, Mapping) else {}
    return (
        not candidate.overrides
        or bool(OTHER_BATCH & candidate.overrides.keys())
        or any(LENGTH.search(str(name)) for name in names)
    )


def as_much(ours: tuple[float, Arm], theirs: tuple[float, Arm], tolerance: float) -> bool:
    """Whether means of a step come to the same whole run.

    Scripts may record one batch size for all arms: then the mean is the same and the plan is not.
    """
    (own, arm), (other, baseline) = ours, theirs
    whole = close(own * arm.steps_or_one, other * baseline.steps_or_one, tolerance)
    otherwise = not close(arm.steps_or_one, baseline.steps_or_one) and declares_steps(arm)
    return whole or (otherwise and close(own, other, tolerance))


def close(value: float, other: float, tolerance: float = SAME_WORK) -> bool:
    """Whether two figures differ by no more than the tolerance, of the larger one."""
    return math.isclose(value, other, rel_tol=tolerance)


class Reference:
    """One figure of the baseline's timed runs, to compare a run's with."""

    def __init__(self, baseline: Arm, of: Figure) -> None:
        self.of = of
        runs = timed(baseline.full_runs)
        self._known = with_known(runs, of)
        by_data: defaultdict[str | None, list[float]] = defaultdict(list)
        for run, value in self._known:
            by_data[_data(run)].append(value)
        self._by_data = {data: median(values) for data, values in by_data.items()}
        self._orders = [run.order for run, _ in self._known]
        # Evidence may lack work; where one of these has it, all jobs recorded it.
        self.runs, self.known = len(runs), len(self._known)
        self.recorded = any(run.work is not None for run in runs)

    def same_data(self, run: FullRun) -> float | None:
        """The middle figure of runs on the run's data, None where none was on the same."""
        return self._by_data.get(_data(run))

    def near(self, run: FullRun) -> list[float]:
        """The figures of the last run before this one and of the next one, or of itself."""
        after = bisect(self._orders, run.order)
        return [value for _, value in self._known[max(after - 1, 0) : after + 1]]

    def beside(self, run: FullRun) -> float | None:
        """The figure to compare a run's with: of the same data, else of the runs beside it."""
        same, near = self.same_data(run), self.near(run)
        if same is not None:
            return same
        return median(near) if near else None


@dataclass(frozen=True)
class RunCheck:
    """Compares the timed runs of an arm, which may be the baseline, with the baseline's."""

    arm: Arm
    evidence: Evidence

    def problem(self, run: FullRun) -> str | None:
        """What keeps the run's wall clock from being compared, None where nothing does."""
        return (
            self._contradiction(run)
            or self._steps(run)
            or self._beside(run, "samples", SAME_WORK)
            or self._beside(run, "tokens", SAME_TOKENS)
            or self._untimed(run)
        )

    @cached_property
    def shares(self) -> Reference:
        """The steps that runs did, as shares of the planned ones."""
        planned = self.evidence.baseline.steps_or_one
        return Reference(
            self.evidence.baseline,
            lambda run: map_optional(steps_of(run), lambda steps: steps / planned),
        )

    @cached_property
    def _means(self) -> dict[str, Reference]:
        """Of a step, by what is counted."""
        of: dict[str, Figure] = {
            "samples": lambda run: run.work.samples_per_step if run.work else None,
            "tokens": lambda run: run.work.tokens_per_step if run.work else None,
        }
        return {what: Reference(self.evidence.baseline, mean) for what, mean in of.items()}

    @cached_property
    def _lines(self) -> bool:
        """Whether a run of the baseline left lines of its steps."""
        return any(run.work and run.work.steps for run in self.evidence.baseline.full_runs)

    @cached_property
    def _usual_gap(self) -> float | None:
        """Seconds that the clocks of the baseline's runs usually leave out."""
        known = without_none(map(_gap, timed(self.evidence.baseline.full_runs)))
        return median(known) if known else None

    def _contradiction(self, run: FullRun) -> str | None:
        if run.work is None:
            return None
        own, lines, name = figure(run, "steps"), run.work.steps, self.arm.name
        seconds, summed = figure(run, "seconds"), run.work.seconds
        if not lines and self._lines:
            return f"a full run of {name} left no lines of its steps"
        if steps_of(run) is None:
            return f"a full run of {name} recorded no steps"
        if lines and own and not close(lines, own):
            return f"a full run of {name} says {own:,.0f} steps, its lines {lines:,}"
        if seconds and summed and abs(seconds - summed) > max(SAME_WORK * seconds, 1.0):
            said = f"{seconds:,.1f} seconds of steps, its lines {summed:,.1f}"
            return f"a full run of {name} says {said}"
        return None

    def _steps(self, run: FullRun) -> str | None:
        steps, shares, planned = steps_of(run), self.shares, self.arm.steps_or_one
        if steps is None:
            # Beside runs with work, one without it is not a record of ours.
            known = shares.beside(run) is not None
            silent = self.arm.name != BASELINE and known and not shares.recorded
            return f"a full run of {self.arm.name} says nothing of its steps" if silent else None
        if self.evidence.quality.early_stopping:
            return None
        share = self._expected_share(run, steps / planned)
        if share is None or close(steps / planned, share):
            return None
        return (
            f"a full run of {self.arm.name} did {steps:,.0f} steps, where {share * planned:,.0f} "
            "are the work of the baseline's"
        )

    def _expected_share(self, run: FullRun, own: float) -> float | None:
        """The share of its plan that a run should have done; ``own`` is what it did."""
        shares = self.shares
        same = shares.same_data(run)
        if same is not None:
            return same
        if self.arm.full_run_steps and shares.runs and not shares.known:
            return 1.0  # its own plan, where no baseline run counts its steps
        near = min(shares.near(run), default=0.0)
        return near if own < LEAST_NEAR * near else None

    def _beside(self, run: FullRun, what: str, tolerance: float) -> str | None:
        reference, name = self._means[what], self.arm.name
        own, beside = reference.of(run), reference.beside(run)
        if own is None:
            silent = run.work is not None and beside is not None
            return f"a full run of {name} recorded no {what}" if silent else None
        if beside is None:
            return f"only {name} recorded {what}" if reference.recorded else None
        if as_much((own, self.arm), (beside, self.evidence.baseline), tolerance):
            return None
        return (
            f"a full run of {name} took {own:,.4g} {what} a step, those of the baseline "
            f"{beside:,.4g}"
        )

    def _untimed(self, run: FullRun) -> str | None:
        """Seconds of the job that its run's clock leaves out, beyond the baseline's usual ones."""
        gap, usual, seconds = _gap(run), self._usual_gap, run.job_seconds
        if self.arm.name == BASELINE or gap is None or usual is None or seconds is None:
            return None
        of_short = min(UNTIMED_SECONDS, UNTIMED_OF_SHORT * seconds)
        if gap <= usual + max(LEAST_UNTIMED, of_short, UNTIMED_SHARE * seconds):
            return None
        return (
            f"a full run of {self.arm.name} timed {run.wall_seconds:,.0f} of the {seconds:,.0f} "
            f"seconds of its job, the baseline's all but {usual:,.0f}"
        )


def _data(run: FullRun) -> str | None:
    """What a run is known to share with others on the same data.

    A run of production says nothing of its data where nothing is recorded of it.
    """
    if run.data is None and run.mode != SHADOW:
        return f"order {run.order}"
    return run.data


def _gap(run: FullRun) -> float | None:
    """Seconds in which a job trained by the service's clock and not by its run's, where known."""
    if run.job_seconds is None or not run.wall_seconds:
        return None
    return max(run.job_seconds - run.wall_seconds, 0.0)


class ComparableWalls:
    """Wall clocks of one arm's runs as they would be at the work of the baseline's usual run."""

    def __init__(self, arm: Arm, evidence: Evidence) -> None:
        self._arm, self._check = arm, RunCheck(arm, evidence)
        runs = timed(evidence.baseline.full_runs)
        self._early = evidence.quality.early_stopping is True
        self._outside = max(((run.wall_seconds or 0.0) - _inside(run) for run in runs), default=0.0)
        self._usual = _usual_share(evidence.baseline)

    def of(self, runs: Sequence[FullRun]) -> list[float]:
        """Seconds of those that can be compared, in the order of time."""
        return without_none(map(self.seconds, finished(runs)))

    def seconds(self, run: FullRun) -> float | None:
        """Seconds at equal work, None for a run that was not timed or did other work.

        Only the time within steps is scaled: what no step explains beyond the baseline's counts as
        time within them.
        """
        wall = run.wall_seconds
        if not run.finished or not wall or self._check.problem(run):
            return None
        factor = self._factor(run)
        if factor == 1:
            return wall
        unexplained = wall - self._outside - UNTIMED_SHARE * wall
        inside = max(_inside(run), min(unexplained, wall))
        return wall - inside + inside * factor

    def _factor(self, run: FullRun) -> float:
        """Steps of the baseline's usual run over those of this one."""
        steps, planned = steps_of(run), self._arm.full_run_steps
        if steps is None or not planned:
            return 1.0
        if self._early:
            return planned / steps
        near = self._check.shares.near(run)
        if self._usual is None or not near:
            return 1.0
        # More steps than the runs beside it is a claim that makes nothing faster.
        return self._usual / min(steps / planned, max(near) * (1 + SAME_WORK))


def _inside(run: FullRun) -> float:
    """Seconds within steps: by the lines, else by the run's own word, else the whole run."""
    whole = run.wall_seconds or 0.0
    lines = run.work.seconds if run.work else 0.0
    return min(lines or figure(run, "seconds") or whole, whole)


def _usual_share(baseline: Arm) -> float | None:
    """The steps that the baseline's runs usually do, over the planned; None where unknown.

    Those of the trial's own runs, where there are any: production's go with its data.
    """
    runs = timed(baseline.full_runs)
    for some in ([run for run in runs if run.mode == SHADOW], runs):
        known = without_none(map(steps_of, some))
        if known:
            return median(known) / baseline.steps_or_one
    return None
