"""Which machines an arm trains on in production: on others a run is no evidence of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain.flag import Flag
from compilegate.domain.workload.model import Training


@dataclass(frozen=True)
class Machines:
    """A cluster of one instance type; None is a type or a number that was not told."""

    instance_type: str | None
    instance_count: int | None

    @property
    def told(self) -> str:
        """In words."""
        return f"{self.instance_count} of {self.instance_type}"


def machines_of(arm: str, training: Training, flags: Iterable[Flag]) -> Machines:
    """What ``training`` says, with the overrides of the latest flag whose candidate is ``arm``.

    ``flags`` are the workload's, oldest first; the baseline has no overrides.
    """
    named = [flag.overrides for flag in flags if flag.candidate == arm]
    overrides: Mapping[str, Any] = named[-1] if named else {}
    return Machines(
        str(overrides.get("instance_type") or training.instance_type),
        int(overrides.get("instance_count") or training.instance_count),
    )


def machines_used(described: Mapping[str, Any]) -> Machines:
    """What a job's description says it ran on."""
    cluster = described.get("ResourceConfig") or {}
    return Machines(cluster.get("InstanceType"), cluster.get("InstanceCount"))
