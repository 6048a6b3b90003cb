"""One candidate as its job would run: the workload with the candidate's changes applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compilegate.domain.compilers import has_own_image
from compilegate.domain.economics import WEEKS_PER_YEAR, Range, amdahl_speedup
from compilegate.domain.eligibility.overhead import MeasuredOverhead, Overhead, overhead_of
from compilegate.domain.facts.images import Image
from compilegate.domain.facts.model import Facts, Instance, Price
from compilegate.domain.judging.power import design_for
from compilegate.domain.planning.trial_design import expected_usd
from compilegate.domain.workload.model import (
    BASELINE,
    Candidate,
    Framework,
    Workload,
)

WORKLOAD_FILE = "workload file"
PROFILE = "the workload's profile"
NO_GRAPH_FRAMEWORKS = ("xgboost", "sklearn")
NO_GRAPH_FAMILIES = ("gbt", "classical")


@dataclass(frozen=True)
class Context:
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
        """Path of a setting in the workload file: the candidate's if it changes it."""
        if self.index is not None and getattr(self.candidate, key, None) is not None:
            return f"candidates[{self.index}].{key}"
        return f"training.{key}"

    def framework_field(self, key: str) -> str:
        """As ``field``, of one of the framework's keys."""
        if self.index is not None and self.candidate.framework is not None:
            return f"candidates[{self.index}].framework.{key}"
        return f"framework.{key}"

    @property
    def compiler_field(self) -> str:
        """Path of the compiler in the workload file; a derived candidate has none of its own."""
        return "candidates" if self.index is None else f"candidates[{self.index}].compiler"

    @property
    def compiler(self) -> str:
        """The compiler switched on, ``none`` for a candidate that changes something else."""
        return self.candidate.compiler or "none"

    @property
    def compiled(self) -> bool:
        """Whether the candidate switches a compiler on."""
        return self.compiler != "none"

    @property
    def framework(self) -> Framework:
        """The candidate's framework and versions."""
        return self.candidate.framework or self.workload.framework

    @property
    def managed(self) -> bool:
        """Whether the candidate asks for SageMaker Training Compiler."""
        return has_own_image(self.compiler)

    @property
    def has_graph(self) -> bool:
        """Whether the job trains a tensor graph at all; trees and classical models do not."""
        return (
            self.framework.name not in NO_GRAPH_FRAMEWORKS
            and self.workload.model.family not in NO_GRAPH_FAMILIES
        )

    @property
    def instance_type(self) -> str:
        """The candidate's instance type."""
        return self.candidate.instance_type or self.workload.training.instance_type

    @property
    def instance_count(self) -> int:
        """The candidate's number of instances."""
        return self.candidate.instance_count or self.workload.training.instance_count

    @property
    def distribution(self) -> str:
        """The candidate's distribution."""
        return self.candidate.distribution or self.workload.training.distribution

    @property
    def precision(self) -> str:
        """The candidate's precision."""
        return self.candidate.precision or self.workload.training.precision

    @property
    def batch_size(self) -> int:
        """The candidate's samples per device."""
        return self.candidate.batch_size or self.workload.training.batch_size

    @property
    def entry_point(self) -> str:
        """The candidate's script."""
        return self.candidate.entry_point or self.workload.training.entry_point

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """The candidate's hyperparameters, laid over the workload's."""
        own = self.candidate.hyperparameters
        base = self.workload.training.hyperparameters
        return {**base, **own} if own else base

    @property
    def same_cluster(self) -> bool:
        """Whether the candidate runs on the baseline's instances."""
        base = self.workload.training
        return (self.instance_type, self.instance_count) == (
            base.instance_type,
            base.instance_count,
        )

    @cached_property
    def baseline(self) -> Context:
        """The job as it runs today, seen the same way."""
        return Context(self.workload, Candidate(BASELINE), None, self.facts, self.region)

    @cached_property
    def instance(self) -> Instance | None:
        """The candidate's instance type, None when unknown."""
        return self.facts.instance(self.instance_type)

    @cached_property
    def image(self) -> Image:
        """The candidate's training image, or why there is none."""
        return self.facts.image(
            self.framework, compiler=self.compiler, region=self.region, instance=self.instance
        )

    @cached_property
    def native_image(self) -> Image:
        """The image of the candidate's versions without the managed compiler."""
        return self.facts.image(
            self.framework, compiler="none", region=self.region, instance=self.instance
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
        return None if self.instance is None else max(self.instance.gpus, 1) * self.instance_count

    @property
    def price(self) -> Price | None:
        """USD per hour of one of the candidate's instances, None when unknown."""
        return self.facts.price(self.instance_type)

    @property
    def usd_per_hour(self) -> float | None:
        """USD per hour of the candidate's cluster."""
        return None if self.price is None else self.price.usd_per_hour * self.instance_count

    @cached_property
    def overhead(self) -> Overhead | None:
        """Seconds a run pays for compilation, None without a compiler."""
        if not self.compiled:
            return None
        assumed = self.facts.compile_overhead(self.compiler, self.workload.model.family)
        image = self.image.uri if self.measured else None
        return overhead_of(self.workload, self.candidate, assumed, self.measured, image)

    @property
    def too_few_runs(self) -> bool:
        """Whether a year holds too few runs to prove quality on, so that no trial is planned."""
        design = design_for(
            self.workload.policy, history=0, candidates=1,
            runs_remaining=self.workload.schedule.runs_per_week * WEEKS_PER_YEAR,
        )  # fmt: skip
        return design is None

    @cached_property
    def trial_usd(self) -> float | None:
        """Expected price of a trial of this candidate alone, None where none could be planned."""
        return expected_usd(self.workload, [self.candidate], self.facts, region=self.region)

    @property
    def waits(self) -> tuple[float, float]:
        """Shares of a step spent on data and on communication; unmeasured counts as none."""
        profile = self.workload.profile
        if profile is None:
            return 0.0, 0.0
        return profile.data_wait_fraction or 0.0, profile.communication_fraction or 0.0

    @cached_property
    def plausible_speedup(self) -> Range | None:
        """Speed-up of the whole step that may be hoped for, within Amdahl's law.

        None without a compiler, without a graph to compile, or when the cluster changes too.
        """
        assumed = self.facts.compute_speedup(self.compiler)
        if assumed is None or not self.has_graph or not self.same_cluster:
            return None
        share = max(0.0, 1 - sum(self.waits))
        return Range(amdahl_speedup(share, assumed.low), amdahl_speedup(share, assumed.high))
