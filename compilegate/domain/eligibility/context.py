"""One candidate as its job would run: the workload with the candidate's changes applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compilegate.domain.economics import Range, amdahl_speedup
from compilegate.domain.facts_model import CompileOverhead, Facts, Instance, Price
from compilegate.domain.workload import Candidate, Workload

WORKLOAD_FILE = "workload file"
NO_GRAPH_FRAMEWORKS = ("xgboost", "sklearn")
NO_GRAPH_FAMILIES = ("gbt", "classical")


@dataclass(frozen=True)
class Context:
    """What a rule sees; ``index`` is the candidate's place in the file, None when derived."""

    workload: Workload
    candidate: Candidate
    index: int | None
    facts: Facts
    region: str

    def field(self, key: str) -> str:
        """Path of a setting in the workload file: the candidate's if it changes it."""
        if self.index is not None and getattr(self.candidate, key, None) is not None:
            return f"candidates[{self.index}].{key}"
        return f"training.{key}"

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
    def has_graph(self) -> bool:
        """Whether the job trains a tensor graph at all; trees and classical models do not."""
        return (
            self.workload.framework.name not in NO_GRAPH_FRAMEWORKS
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
    def same_cluster(self) -> bool:
        """Whether the candidate runs on the baseline's instances."""
        base = self.workload.training
        return (self.instance_type, self.instance_count) == (
            base.instance_type,
            base.instance_count,
        )

    @cached_property
    def instance(self) -> Instance | None:
        """The candidate's instance type, None when unknown."""
        return self.facts.instance(self.instance_type)

    @property
    def devices(self) -> int | None:
        """GPUs of the whole cluster, at least one per instance; None when unknown."""
        return None if self.instance is None else max(self.instance.gpus, 1) * self.instance_count

    @property
    def base_devices(self) -> int | None:
        """As ``devices``, of the baseline."""
        base = self.workload.training
        instance = self.facts.instance(base.instance_type)
        return None if instance is None else max(instance.gpus, 1) * base.instance_count

    @property
    def base_price(self) -> Price | None:
        """USD per hour of one of the baseline's instances, None when unknown."""
        return self.facts.price(self.workload.training.instance_type)

    @property
    def base_usd_per_hour(self) -> float | None:
        """USD per hour of the baseline's cluster."""
        price = self.base_price
        count = self.workload.training.instance_count
        return None if price is None else price.usd_per_hour * count

    @property
    def usd_per_hour(self) -> float | None:
        """USD per hour of the candidate's cluster."""
        price = self.facts.price(self.instance_type)
        return None if price is None else price.usd_per_hour * self.instance_count

    @property
    def overhead(self) -> CompileOverhead | None:
        """Seconds a run pays for compilation, None without a compiler."""
        return self.facts.compile_overhead(self.compiler, self.workload.model.family)

    @property
    def waits(self) -> tuple[float, float]:
        """Shares of a step spent on data and on communication; unmeasured counts as none."""
        profile = self.workload.profile
        if profile is None:
            return 0.0, 0.0
        return profile.data_wait_fraction or 0.0, profile.communication_fraction or 0.0

    @property
    def plausible_speedup(self) -> Range | None:
        """Speed-up of the whole step that may be hoped for, within Amdahl's law.

        None without a compiler, without a graph to compile, or when the cluster changes too.
        """
        assumed = self.facts.compute_speedup(self.compiler)
        if assumed is None or not self.has_graph or not self.same_cluster:
            return None
        share = max(0.0, 1 - sum(self.waits))
        return Range(amdahl_speedup(share, assumed.low), amdahl_speedup(share, assumed.high))
