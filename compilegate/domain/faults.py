"""The faults on which the equivalence check was tried: how often it misses one, and its bounds.

benchmarks/equivalence measures them; domain/judging/equivalence.py says what they prove.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compilegate.domain.expected import Problem, Section, key

# Counts beyond this are typing errors.
MOST = 100_000


@dataclass(frozen=True)
class JobClass(Section):
    """What the faults of a compiler depend on."""

    framework: str = key("with its minor version, such as pytorch 2.13")
    device: str = key("such as cpu x86_64, or a kind of GPU such as cuda 9.0")
    precision: str = key("such as bf16")

    @property
    def words(self) -> str:
        """The class as one text, by which it is found."""
        return f"{self.framework}, {self.device}, {self.precision}"

    @property
    def kind_of_device(self) -> str:
        """Without its generation, such as cuda."""
        return self.device.partition(" ")[0]


@dataclass(frozen=True)
class FaultClass(JobClass):
    """Harmful faults in jobs of a class on which the equivalence check was tried.

    It missed those that it passed and those that it could not examine.
    """

    faults: int = key("that the check was tried on", "faults", low=0, high=MOST)
    missed: int = key("of these", "faults", low=0, high=MOST)
    date: str = key("when it was tried")
    sound: int = key("compilations without a fault", "compilations", default=0, low=0, high=MOST)
    false_alarms: int = key("of these", "compilations", default=0, low=0, high=MOST)
    revoked_at: str | None = key("when a confirmed alarm made it void", default=None)


def _not_figures(figures: Mapping[str, Any], most: float = math.inf) -> Iterator[Problem]:
    for name, figure in figures.items():
        if not isinstance(figure, float) or not 0 <= figure <= most:
            bounds = "of 0 or more" if most == math.inf else f"of 0 to {most:g}"
            yield name, f"must be a number {bounds}", "use that of the check's table"


@dataclass(frozen=True)
class FaultTable(Section):
    """What is known of the equivalence check whose sources have this digest.

    ``bounds`` are the largest ratios that pass, by kind of device, part and arithmetic
    (``cuda.gradients.own``); ``shares`` how much of a part need not be looked at, 0 if not named.
    """

    check: str = key("digest of its sources")
    bounds: Mapping[str, float] = key("largest ratios that pass", check=_not_figures)
    shares: Mapping[str, float] = key(
        "that may stay unseen", factory=dict, check=partial(_not_figures, most=1.0)
    )
    classes: tuple[FaultClass, ...] = key("of jobs", default=())
    device: str | None = key("of the job whose evidence this is in", default=None)

    def bounds_of(self, job_class: JobClass | None) -> dict[str, float]:
        """Those of its kind of device, by part and arithmetic; none where it has no class."""
        kind = job_class.kind_of_device if job_class else ""
        named = ((name.partition("."), bound) for name, bound in self.bounds.items())
        return {part: bound for (device, _, part), bound in named if device == kind}
