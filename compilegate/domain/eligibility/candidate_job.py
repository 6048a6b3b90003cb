"""One candidate as its job would run: the workload with the candidate's changes applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compilegate.domain.compilers import compile_overhead, compute_speedup
from compilegate.domain.economics import (
    WEEKS_PER_YEAR,
    Range,
    amdahl_speedup,
    annual_saving_usd,
    annual_training_usd,
)
from compilegate.domain.eligibility.overhead import (
    BreakEven,
    MeasuredOverhead,
    Overhead,
    break_even,
    overhead_of,
)
from compilegate.domain.facts.images import Image
from compilegate.domain.facts.model import Facts, Instance, Price
from compilegate.domain.judging.power import design_for
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.workload.model import BASELINE, Candidate, Framework, Training, Workload

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
        if profile is None:
            return 0.0, 0.0
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
