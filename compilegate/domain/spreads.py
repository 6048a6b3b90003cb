"""How much whole jobs and blocks vary, and how far blocks miss whole jobs: learned, else assumed.

All are spreads of logarithms of seconds. Each comes from the workload's own runs first, behind
them from other workloads' trials on the same instance type, then on its family, then from a
constant. A source with spread s and df degrees of freedom is drawn towards the one behind it, s_0,
as if that were worth three, on the scale where spreads of samples are about normal (Bartlett and
Kendall 1946, Supplement to the Journal of the Royal Statistical Society 8:128):

    ln s' = (df ln s + 3 ln s_0) / (df + 3)

Only spreads are learned, never where walls stand: public runs of one program vary by 0.08 % within
a campaign and by 2 % between campaigns. Blocks of one node are steadier than jobs, so that walls
are never learned from blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compilegate.domain.arithmetic import median, squares
from compilegate.domain.expected import Section, key

WORKLOAD, INSTANCE, FAMILY = "workload", "instance", "family"
# The prior degrees of freedom of a spread: as much as the fewest blocks of a look tell.
PRIOR_DF = 3.0
# What is assumed: of ln(wall clock) over nodes, of ln(speed-up) over blocks of a node each, and of
# how far blocks that agree are off a whole job.
WALL_SD, BLOCK_SD, UNSEEN_SD = 0.08, 0.03, 0.02
# Public runs of one program vary by as much at least.
LEAST_SD = 2e-4
# Median of the difference of two normal values, in their standard deviations.
MIDDLE = 0.6745 * math.sqrt(2)
# Walls that differ by less are one measurement copied.
COPIED = 1e-9
MINUTE = 60
MINUTES, COPIES = "minutes", "copies"
# Of production's latest runs: last year's machines do not count.
MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """Squared deviations of logarithms, and what they are worth; ``runs`` are blocks of blocks."""

    squares: float = 0.0
    df: float = 0.0
    runs: int = 0

    def __add__(self, other: Sample) -> Sample:
        """Both together, each about its own mean."""
        return Sample(self.squares + other.squares, self.df + other.df, self.runs + other.runs)

    @property
    def sd(self) -> float:
        """Of a sample that has a degree of freedom."""
        return max(math.sqrt(self.squares / self.df), LEAST_SD)


NOTHING = Sample()


@dataclass(frozen=True, slots=True)
class Measured:
    """What trials of one workload on one instance type have shown."""

    instance_type: str
    whole_job: Sample = NOTHING
    block: Sample = NOTHING
    unseen: Sample = NOTHING


def sample_of(logs: Sequence[float]) -> Sample:
    """Of one group of runs; nothing of a single one."""
    return Sample(squares(logs), len(logs) - 1, len(logs)) if len(logs) > 1 else NOTHING


@dataclass(frozen=True)
class Spread(Section):
    """A spread that was learned, and the nearest source that it is from."""

    sd: float = key("of the logarithm", "log ratio", above=0.0, high=10.0)
    source: str = key("the nearest", allowed=(WORKLOAD, INSTANCE, FAMILY))
    name: str = key("of the workload, the instance type or its family")
    runs: int = key("of that source, blocks or trials", "runs", low=1)
    workloads: int = key("that made them", "workloads", low=1)

    def words(self, counted: str) -> str:
        """``0.12 % (14 runs of bert)``; ``counted`` is what ``runs`` are."""
        by = self.name if self.source == WORKLOAD else f"{self.workloads} workloads on {self.name}"
        return f"{100 * self.sd:.2g} % ({self.runs} {counted} of {by})"


@dataclass(frozen=True)
class Spreads(Section):
    """What a trial is judged by; a constant stands for what is None.

    ``left_out`` says why production's walls tell nothing.
    """

    whole_job: Spread | None = key("of whole jobs", default=None)
    block: Spread | None = key("of blocks", default=None)
    unseen: Spread | None = key("of whole jobs about what blocks predict", default=None)
    left_out: str | None = key("earlier walls", default=None, allowed=(MINUTES, COPIES))

    @property
    def words(self) -> str:
        """Every spread with where it is from; the constants where nothing was learned."""
        learned = (
            (self.whole_job, WALL_SD, "whole jobs vary by", "runs"),
            (self.block, BLOCK_SD, "blocks by", "blocks"),
            (self.unseen, UNSEEN_SD, "and blocks miss whole jobs by", "trials"),
        )
        return ", ".join(
            f"{what} {one.words(counted) if one else f'{100 * constant:g} % (assumed)'}"
            for one, constant, what, counted in learned
        )


# Nothing was learned.
ASSUMED = Spreads()


def learn(
    workload: str,
    instance_type: str,
    seconds: Sequence[float],
    measured: Iterable[tuple[str, Measured]],
) -> Spreads:
    """The spreads for a trial of a workload on an instance type.

    ``seconds`` are walls of production's baseline runs on that type at equal work, in the order of
    time; ``measured`` is what trials have shown, by workload.
    """
    names = {WORKLOAD: workload, INSTANCE: instance_type, FAMILY: family_of(instance_type)}
    trials: Mapping[str, list[tuple[str, Measured]]] = {source: [] for source in names}
    for name, one in measured:
        if one.instance_type == instance_type:
            trials[WORKLOAD if name == workload else INSTANCE].append((name, one))
        elif family_of(one.instance_type) == names[FAMILY]:
            trials[FAMILY].append((name, one))

    def spread(kind: str, constant: float, own: Sample = NOTHING) -> Spread | None:
        sd, learned = constant, None
        for source, name in reversed(names.items()):
            samples = [(of, getattr(one, kind)) for of, one in trials[source]]
            samples += [(workload, own)] if source == WORKLOAD else []
            total = sum((one for _, one in samples), NOTHING)
            if total.df:
                sd = drawn(total, sd)
                workloads = len({of for of, one in samples if one.df})
                learned = Spread(sd, source, name, total.runs, workloads)
        return learned

    latest = seconds[-MOST_RUNS:]
    walls, left_out = by_neighbours(latest), None
    if walls.df and (in_minutes(latest) or walls.squares < COPIED**2):
        left_out = MINUTES if in_minutes(latest) else COPIES
    return Spreads(
        spread("whole_job", WALL_SD, NOTHING if left_out else walls),
        spread("block", BLOCK_SD),
        spread("unseen", UNSEEN_SD),
        left_out,
    )


def family_of(instance_type: str) -> str:
    """``ml.g5`` of ``ml.g5.xlarge``."""
    return instance_type.rpartition(".")[0]


def drawn(sample: Sample, towards: float) -> float:
    """The spread of a sample, drawn towards that of the source behind it."""
    log = sample.df * math.log(sample.sd) + PRIOR_DF * math.log(towards)
    return math.exp(log / (sample.df + PRIOR_DF))


def by_neighbours(seconds: Sequence[float]) -> Sample:
    """How much walls vary from one run to the next: by the middle difference, worth half of each.

    So neither a drift nor the steps between campaigns count as chance. That the middle one may be
    too small is what the trial's own runs correct.
    """
    apart = [abs(math.log(one / other)) for one, other in pairwise(seconds)]
    if not apart:
        return NOTHING
    df = len(apart) / 2
    return Sample(df * (median(apart) / MIDDLE) ** 2, df, len(seconds))


def in_minutes(seconds: Sequence[float]) -> bool:
    """Whether walls are whole minutes, so that how much they vary is lost."""
    return bool(seconds) and not any(wall % MINUTE for wall in seconds)
