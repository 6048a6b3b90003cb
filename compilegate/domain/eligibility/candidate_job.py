"""One candidate as its job would run: the workload with the candidate's changes applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from compilegate.domain.compilers import (
    COMPILERS,
    DEFAULT,
    compile_overhead,
    compute_speedup,
    keeps_cache,
)
from compilegate.domain.compilers.descriptor import CompileOverhead
from compilegate.domain.decision import ArmFigures
from compilegate.domain.economics import (
    WEEKS_PER_YEAR,
    Range,
    amdahl_speedup,
    annual_saving_usd,
    annual_training_usd,
    break_even_seconds,
)
from compilegate.domain.facts import Facts, Image, Instance, Price
from compilegate.domain.judging.statistics import design_for
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.workload.model import BASELINE, Candidate, Framework, Training, Workload

# What a run pays for compilation, and from which length on a run earns it back.


@dataclass(frozen=True)
class MeasuredOverhead:
    """Compile seconds per run that an earlier trial measured on one arm, None where it did not."""

    trial: str
    compiler: str
    compile_mode: str | None
    image: str
    warm_seconds: float | None
    cold_seconds: float | None


def measured_overheads(
    trial: str, figures: Iterable[ArmFigures], arms: Iterable[ArmPlan]
) -> Iterator[MeasuredOverhead]:
    """What a trial measured, by the judge's figures of its arms.

    A compiler that counted no time at all was not measured.
    """
    by_name = {arm.name: arm for arm in arms}
    for measured in figures:
        arm = by_name.get(measured.name)
        warm, cold = measured.compile_seconds_warm or None, measured.compile_seconds_cold or None
        if arm is None or arm.compiler == "none" or (warm, cold) == (None, None):
            continue
        yield MeasuredOverhead(
            trial=trial,
            compiler=arm.compiler,
            compile_mode=arm.compile_mode,
            image=arm.image,
            warm_seconds=warm,
            cold_seconds=cold,
        )


@dataclass(frozen=True)
class Overhead:
    """Seconds per run with a compile cache (``warm``) and without (``cold``).

    ``warm_is_measured`` where the warm seconds were measured on this job; otherwise only the cold
    ones bound what a run pays. ``measured`` where either was.
    """

    warm_seconds: float
    cold_seconds: float
    warm_is_measured: bool
    basis: str
    measured: bool = True

    @property
    def sure_seconds(self) -> float:
        """What every run must be expected to pay: the measured figure, or the worst assumption."""
        return self.warm_seconds if self.warm_is_measured else self.cold_seconds


@dataclass(frozen=True)
class BreakEven:
    """Seconds of a baseline run from which compiling pays, at the best plausible speed-up.

    A run must exceed ``sure_seconds``: from the measured overhead where there is one, else from
    the largest that is assumed.
    """

    sure_seconds: float
    warm_seconds: float
    cold_seconds: float


def break_even(overhead: Overhead, speedup: float) -> BreakEven | None:
    """None where nothing is gained."""
    if speedup <= 1:
        return None
    return BreakEven(*(
        break_even_seconds(seconds, speedup) or 0.0
        for seconds in (overhead.sure_seconds, overhead.warm_seconds, overhead.cold_seconds)
    ))  # fmt: skip


def overhead_of(
    workload: Workload,
    candidate: Candidate,
    assumed: CompileOverhead | None,
    measured: Sequence[MeasuredOverhead],
    image: str | None,
) -> Overhead | None:
    """Profile first, then the last trial on the same image, then what is assumed of the compiler.

    None where the compiler has neither.
    """
    warm, cold, basis = _profiled(workload, candidate) or _from_trial(candidate, measured, image)
    if not keeps_cache(candidate.compiler):
        warm = cold = max((one for one in (warm, cold) if one is not None), default=None)
    if assumed is None:
        if warm is None:
            return None
        return Overhead(warm, max(warm, cold or 0.0), warm_is_measured=True, basis=basis)
    if warm is None and cold is None:
        return Overhead(
            assumed.warm_seconds, assumed.cold_seconds, False, assumed.basis, measured=False
        )
    if warm is None:
        return Overhead(min(assumed.warm_seconds, cold or 0.0), cold or 0.0, False, basis)
    if cold is None:
        cold, basis = assumed.cold_seconds, f"{basis}; without a cache: {assumed.basis}"
    return Overhead(warm, max(warm, cold), warm_is_measured=True, basis=basis)


# Warm and cold seconds, None where not measured, and where they come from.
_Measured = tuple[float | None, float | None, str]


def _profiled(workload: Workload, candidate: Candidate) -> _Measured | None:
    """The profile's figures; of two compilers they are taken to be the first one's."""
    profile = workload.profile
    if (profile.compile_seconds, profile.compile_seconds_cold) == (None, None):
        return None
    used = {one.compiler for one in workload.candidates}
    profiled = next((name for name in COMPILERS if name in used), DEFAULT.name)
    if candidate.compiler != profiled:
        return None
    return profile.compile_seconds, profile.compile_seconds_cold, "measured: the profile"


def _from_trial(
    candidate: Candidate, measured: Sequence[MeasuredOverhead], image: str | None
) -> _Measured:
    """The largest figures of the newest trial that ran this compiler on this image."""
    alike = [
        one
        for one in measured
        if one.compiler == candidate.compiler
        and one.compile_mode == candidate.compile_mode
        and one.image == image
    ]
    if not alike:
        return None, None, ""
    trial = alike[-1].trial
    last = [one for one in alike if one.trial == trial]
    warm = [one.warm_seconds for one in last if one.warm_seconds is not None]
    cold = [one.cold_seconds for one in last if one.cold_seconds is not None]
    return max(warm, default=None), max(cold, default=None), f"measured in trial {trial}"


WORKLOAD_FILE = "workload file"
PROFILE = "the workload's profile"
NO_GRAPH_FRAMEWORKS = ("xgboost", "sklearn")
NO_GRAPH_FAMILIES = ("gbt", "classical")


@dataclass(frozen=True)
class CandidateJob:
    """What a rule sees; ``index`` is the candidate's place in the file, None when derived.

    ``measured`` are compile times of earlier trials of this workload, oldest first.
    """

    workload: Workload
    candidate: Candidate
    index: int | None
    facts: Facts
    region: str
    measured: tuple[MeasuredOverhead, ...] = ()

    def field(self, key: str) -> str:
        """Path of a setting in the workload file: the candidate's if it changes it.

        ``key`` is one of ``training``, or ``framework.name`` and its like.
        """
        section, _, rest = key.rpartition(".")
        if self.index is not None and getattr(self.candidate, section or key, None) is not None:
            return f"candidates[{self.index}].{key}"
        return key if section else f"training.{rest}"

    @property
    def compiler_field(self) -> str:
        """Path of the compiler in the workload file; a derived candidate has none of its own."""
        return "candidates" if self.index is None else f"candidates[{self.index}].compiler"

    @cached_property
    def training(self) -> Training:
        """The training with the candidate's changes."""
        return self.candidate.applied_to(self.workload.training)

    @property
    def framework(self) -> Framework:
        """The candidate's framework and versions."""
        return self.candidate.framework or self.workload.framework

    @property
    def compiler(self) -> str:
        """The compiler switched on, ``none`` for a candidate that changes something else."""
        return self.candidate.compiler or "none"

    @property
    def compiled(self) -> bool:
        """Whether the candidate switches a compiler on."""
        return self.compiler != "none"

    @property
    def managed(self) -> bool:
        """Whether the candidate names SageMaker Training Compiler."""
        return self.compiler == self.facts.managed.compiler

    @property
    def has_graph(self) -> bool:
        """Whether the job trains a tensor graph; trees and classical models do not."""
        return (
            self.framework.name not in NO_GRAPH_FRAMEWORKS
            and self.workload.model.family not in NO_GRAPH_FAMILIES
        )

    @property
    def runs_managed(self) -> bool:
        """Whether the managed compiler has a graph to compile in this job."""
        return self.managed and self.has_graph

    @property
    def same_cluster(self) -> bool:
        """Whether the candidate runs on the baseline's instances."""
        own, base = self.training, self.workload.training
        return (own.instance_type, own.instance_count) == (base.instance_type, base.instance_count)

    @cached_property
    def baseline(self) -> CandidateJob:
        """The job as it runs today, seen the same way."""
        return CandidateJob(self.workload, Candidate(name=BASELINE), None, self.facts, self.region)

    @cached_property
    def instance(self) -> Instance | None:
        """The candidate's instance type, None when unknown."""
        return self.facts.instance(self.training.instance_type)

    def image(self, compiler: str | None = None) -> Image:
        """The training image with the candidate's compiler or another, or why there is none."""
        return self.facts.image(
            self.framework,
            compiler=compiler or self.compiler,
            region=self.region,
            instance=self.instance,
        )

    @property
    def same_framework(self) -> bool:
        """Whether the candidate runs on the workload's versions."""
        return self.facts.same_framework(
            self.framework, self.workload.framework, region=self.region, instance=self.instance
        )

    @property
    def devices(self) -> int | None:
        """GPUs of the whole cluster, at least one per instance; None when unknown."""
        count = self.training.instance_count
        return None if self.instance is None else self.instance.devices(count)

    @property
    def several_devices(self) -> bool:
        """Whether the cluster has more than one GPU; not where devices are unknown."""
        return (self.devices or 1) > 1

    @property
    def price(self) -> Price | None:
        """USD per hour of one of the candidate's instances, None when unknown."""
        return self.facts.price(self.training.instance_type)

    @property
    def usd_per_hour(self) -> float | None:
        """USD per hour of the candidate's cluster."""
        price = self.price
        return None if price is None else price.usd_per_hour * self.training.instance_count

    @cached_property
    def overhead(self) -> Overhead | None:
        """Seconds a run pays for compilation, None without a compiler."""
        if not self.compiled:
            return None
        assumed = compile_overhead(self.compiler, self.workload.model.family)
        image = self.image().uri if self.measured else None
        return overhead_of(self.workload, self.candidate, assumed, self.measured, image)

    @property
    def waits(self) -> tuple[float, float]:
        """Shares of a step spent on data and on communication; unmeasured counts as none."""
        profile = self.workload.profile
        return profile.data_wait_fraction or 0.0, profile.communication_fraction or 0.0

    @cached_property
    def plausible_speedup(self) -> Range | None:
        """Plausible speed-up of the whole step, within Amdahl's law.

        None without a compiler, without a graph to compile, or when the cluster changes too.
        """
        assumed = compute_speedup(self.compiler)
        if assumed is None or not self.has_graph or not self.same_cluster:
            return None
        share = max(0.0, 1 - sum(self.waits))
        return Range(amdahl_speedup(share, assumed.low), amdahl_speedup(share, assumed.high))

    @property
    def break_even(self) -> BreakEven | None:
        """None where there is nothing to compile or nothing to gain."""
        if self.overhead is None or self.plausible_speedup is None:
            return None
        return break_even(self.overhead, self.plausible_speedup.high)

    @property
    def annual_usd(self) -> float | None:
        """What the job costs a year as it runs today, None without a price."""
        base, schedule = self.baseline.usd_per_hour, self.workload.schedule
        if base is None:
            return None
        return annual_training_usd(base, schedule.run_hours, schedule.runs_per_week)

    def saving_usd(self, speedup: float) -> float | None:
        """USD a year at a speed-up, less what compiling costs each run; None without a price."""
        annual, hours = self.annual_usd, self.workload.schedule.run_hours
        seconds = 0.0 if self.overhead is None else self.overhead.warm_seconds
        return None if annual is None else annual_saving_usd(annual, hours, speedup, seconds)

    @property
    def plausible_saving(self) -> Range | None:
        """USD a year at both ends of the plausible speed-up; None if price or speed-up is."""
        plausible = self.plausible_speedup
        if plausible is None:
            return None
        low, high = self.saving_usd(plausible.low), self.saving_usd(plausible.high)
        return None if low is None or high is None else Range(low, high)

    @cached_property
    def trial_usd(self) -> float | None:
        """Expected price of a trial of this candidate alone, None where none could be planned."""
        return expected_usd(self.workload, [self.candidate], self.facts, region=self.region)

    @property
    def too_few_runs(self) -> bool:
        """Whether a year holds too few runs to prove quality on, so that no trial is planned."""
        runs = self.workload.schedule.runs_per_week * WEEKS_PER_YEAR
        return (
            design_for(self.workload.policy, history=0, candidates=1, runs_remaining=runs) is None
        )
