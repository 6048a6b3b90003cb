"""One candidate as its job would run: the workload with the candidate's changes applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compilegate.domain.compilers import COMPILERS, DEFAULT, Compiler, compiler_named
from compilegate.domain.decision import ArmFigures
from compilegate.domain.economics import (
    Range,
    amdahl_speedup,
    annual_saving_usd,
    annual_training_usd,
    break_even_seconds,
)
from compilegate.domain.facts import Facts, Image, Instance
from compilegate.domain.optional import largest, map_optional, without_none
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.planning.plan import expected_usd
from compilegate.domain.reasons import Reason, finding
from compilegate.domain.workload.model import BASELINE, Candidate, Framework, Training, Workload

NO_GRAPH_FRAMEWORKS = ("xgboost", "sklearn")
NO_GRAPH_FAMILIES = ("gbt", "classical")
# In the registry, the beginning of a field that is the candidate's where that changes it.
OF_CANDIDATE = "candidate."


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
    by_name = {arm.name: arm for arm in arms if arm.compiler != "none"}
    for measured in figures:
        warm, cold = measured.compile_seconds_warm or None, measured.compile_seconds_cold or None
        if measured.name in by_name and (warm or cold):
            arm = by_name[measured.name]
            yield MeasuredOverhead(trial, arm.compiler, arm.compile_mode, arm.image, warm, cold)


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

    overhead: Overhead
    sure_seconds: float
    warm_seconds: float
    cold_seconds: float


@dataclass(frozen=True)
class CandidateJob:
    """What a rule sees; ``place`` is the candidate's path in the file, empty when derived.

    ``measured`` are compile times of earlier trials of this workload, oldest first.
    """

    workload: Workload
    candidate: Candidate
    place: str
    facts: Facts
    region: str
    measured: tuple[MeasuredOverhead, ...] = ()

    def finds(self, code: str, situation: str = "", **values: Any) -> Reason:
        """A reason about this job; its templates may name ``values`` and what is said below."""
        reason = finding(
            code,
            situation,
            **{
                "framework": self.framework.name,
                "version": self.framework.version,
                "instance_type": self.training.instance_type,
                "distribution": self.training.distribution,
                "compiler": self.compiler,
                "family": self.workload.model.family,
                "model": self.workload.model.name,
                "region": self.region,
                "status": self.facts.managed.status,
                "as_of": self.facts.as_of,
                **values,
            },
        )
        if not reason.field.startswith(OF_CANDIDATE):
            return reason
        return replace(reason, field=self.field(reason.field.removeprefix(OF_CANDIDATE)))

    def field(self, key: str) -> str:
        """Path of a setting in the workload file: the candidate's if it changes it.

        ``key`` is one of ``training``, or ``framework.name`` and its like.
        """
        section, _, rest = key.rpartition(".")
        if self.place and getattr(self.candidate, section or key, None) is not None:
            return f"{self.place}.{key}"
        return key if section else f"training.{rest}"

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
    def descriptor(self) -> Compiler:
        """What is known of that compiler."""
        return compiler_named(self.compiler)

    @property
    def compiled(self) -> bool:
        """Whether the candidate switches on what compiles."""
        return self.descriptor.compiles

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
        return CandidateJob(self.workload, Candidate(name=BASELINE), "", self.facts, self.region)

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
    def devices(self) -> int | None:
        """GPUs of the whole cluster, at least one per instance; None when unknown."""
        count = self.training.instance_count
        return map_optional(self.instance, lambda one: one.devices(count))

    @property
    def several_devices(self) -> bool:
        """Whether the cluster has more than one GPU; not where devices are unknown."""
        return (self.devices or 1) > 1

    @property
    def usd_per_hour(self) -> float | None:
        """USD per hour of the candidate's cluster, None without a price."""
        price, count = self.facts.price(self.training.instance_type), self.training.instance_count
        return map_optional(price, lambda each: each.usd_per_hour * count)

    @cached_property
    def overhead(self) -> Overhead | None:
        """Seconds a run pays for compilation, None without a compiler or any figure of it.

        Profile first, then the last trial on the same image, then what is assumed of the compiler.
        """
        warm, cold, basis = self._profiled() or self._measured_in_a_trial()
        if not self.descriptor.keeps_cache:
            warm = cold = largest((warm, cold))
        assumed = self.descriptor.overhead(self.workload.model.family)
        if assumed is None:
            return None if warm is None else Overhead(warm, max(warm, cold or 0.0), True, basis)
        if warm is None:
            warm, most = assumed.warm_seconds, assumed.cold_seconds
            if cold is None:
                return Overhead(warm, most, False, assumed.basis, measured=False)
            return Overhead(min(warm, cold), cold, False, basis)
        if cold is None:
            cold, basis = assumed.cold_seconds, f"{basis}; without a cache: {assumed.basis}"
        return Overhead(warm, max(warm, cold), True, basis)

    def _profiled(self) -> tuple[float | None, float | None, str] | None:
        """Warm and cold seconds of the profile; of two compilers they are the first one's."""
        profile = self.workload.profile
        warm, cold = profile.compile_seconds, profile.compile_seconds_cold
        used = {one.compiler for one in self.workload.candidates}
        named = (one.name for one in COMPILERS.values() if one.name in used and one.compiles)
        profiled = next(named, DEFAULT.name)
        if (warm, cold) == (None, None) or self.compiler != profiled:
            return None
        return warm, cold, "measured: the profile"

    def _measured_in_a_trial(self) -> tuple[float | None, float | None, str]:
        """The largest figures of the newest trial that ran this compiler on this image."""
        alike = [
            one
            for one in self.measured
            if one.compiler == self.compiler
            and one.compile_mode == self.candidate.compile_mode
            and one.image == self.image().uri
        ]
        if not alike:
            return None, None, ""
        last = [one for one in alike if one.trial == alike[-1].trial]
        warm = largest(one.warm_seconds for one in last)
        cold = largest(one.cold_seconds for one in last)
        return warm, cold, f"measured in trial {alike[-1].trial}"

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
        assumed = self.descriptor.compute_speedup
        if assumed is None or not self.has_graph or not self.same_cluster:
            return None
        share = max(0.0, 1 - sum(self.waits))
        return Range(amdahl_speedup(share, assumed.low), amdahl_speedup(share, assumed.high))

    @property
    def break_even(self) -> BreakEven | None:
        """None where there is nothing to compile or nothing to gain."""
        overhead, plausible = self.overhead, self.plausible_speedup
        if overhead is None or plausible is None or plausible.high <= 1:
            return None
        each = (overhead.sure_seconds, overhead.warm_seconds, overhead.cold_seconds)
        ends = (break_even_seconds(one, plausible.high) or 0.0 for one in each)
        return BreakEven(overhead, *ends)

    @property
    def annual_usd(self) -> float | None:
        """What the job costs a year as it runs today, None without a price."""
        hours, runs = self.workload.schedule.run_hours, self.workload.schedule.runs_per_week
        price = self.baseline.usd_per_hour
        return map_optional(price, lambda usd: annual_training_usd(usd, hours, runs))

    def saving_usd(self, speedup: float) -> float | None:
        """USD a year at a speed-up, less what compiling costs each run; None without a price."""
        annual, hours = self.annual_usd, self.workload.schedule.run_hours
        seconds = self.overhead.warm_seconds if self.overhead else 0.0
        return None if annual is None else annual_saving_usd(annual, hours, speedup, seconds)

    @property
    def plausible_saving(self) -> Range | None:
        """USD a year at both ends of the plausible speed-up; None if price or speed-up is."""
        ends = without_none(map(self.saving_usd, self.plausible_speedup or ()))
        return Range(*ends) if ends else None

    @cached_property
    def trial_usd(self) -> float | None:
        """Expected price of a trial of this candidate alone, None where none could be planned."""
        return expected_usd(self.workload, [self.candidate], self.facts, region=self.region)
