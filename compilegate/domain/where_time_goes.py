"""Where a step's time goes: profiled steps of a candidate beside the baseline's.

No decision reads this. What a job recorded counts only where it is whole: a broken profile is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.arithmetic import median
from compilegate.domain.codec import OMITTED, DocumentError, read, write
from compilegate.domain.judging.measured import Measured
from compilegate.domain.optional import without_none

SHOWN = 5
MOST_TIMES, MOST_CHARACTERS = 64, 200  # of a profile that counts, and of a name in it
NOT_RECORDED, BROKEN = "not_recorded", "broken"
# Why a segment has no profile: the codes of its job (training/compilegate_runtime/profiled.py).
CODES = (
    NOT_RECORDED, "steps_too_long", "time_exceeded", "incomplete", "no_kernels", "trace_too_large",
    "out_of_memory", "failed",
)  # fmt: skip


@dataclass(frozen=True)
class KernelTime:
    """``seconds`` per step of a class of kernels in one graph, or of the kernel with a ``name``."""

    graph: str
    kernel_class: str
    seconds: float
    name: str = field(default="", metadata=OMITTED)


@dataclass(frozen=True)
class Profile:
    """One segment's profiled steps: ``rows`` are all of their time, ``kernels`` the longest.

    ``absent`` is the code of why there are none.
    """

    schema: int = 1
    rows: tuple[KernelTime, ...] = ()
    kernels: tuple[KernelTime, ...] = ()
    absent: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True)
class Difference:
    """A class of kernels in both arms, in seconds per step of the baseline's samples.

    ``kernel`` is the one that differs most in the direction of the class, the graphs are those
    with most of its time; empty where there is none. ``share`` is that of the sizes of all
    classes' differences, so that losses do not cancel gains.
    """

    kernel_class: str
    kernel: str
    baseline_graph: str
    candidate_graph: str
    baseline_seconds: float
    candidate_seconds: float
    seconds: float
    share: float


@dataclass(frozen=True)
class WhereTimeGoes:
    """Both arms in ``blocks`` that each profiled; ``arms`` is all of their time by name.

    ``differences`` are the largest, largest first. ``missing`` counts blocks without a profile by
    arm and code.
    """

    candidate: str
    blocks: int
    differences: tuple[Difference, ...]
    arms: Mapping[str, tuple[KernelTime, ...]]
    missing: Mapping[str, Mapping[str, int]]

    def to_dict(self) -> dict[str, Any]:
        """As a report's JSON has it."""
        return dict(write(self))


def read_profile(document: object) -> Profile:
    """A segment's profile; ``absent`` where it is none or broken."""
    try:
        profile = read(Profile, document)
    except DocumentError:
        return Profile(absent=BROKEN)
    if profile.absent in CODES:
        return profile
    times = (*profile.rows, *profile.kernels)
    sound = (
        (profile.schema, profile.absent) == (1, None)
        and 0 < len(profile.rows) <= len(times) <= MOST_TIMES
        and all(one.seconds >= 0 for one in times)
        and all(len(one.graph + one.kernel_class + one.name) <= MOST_CHARACTERS for one in times)
    )
    return profile if sound else Profile(absent=BROKEN)


def where_time_goes(measured: Measured) -> WhereTimeGoes | None:
    """The lead's profiles beside the baseline's; None where no segment recorded any.

    Each figure is that of the middle block. A step of other samples is scaled to the baseline's.
    """
    arms = (measured.baseline, measured.lead)
    sides: tuple[list[Scaled], list[Scaled]] = ([], [])
    missing = {arm.name: Counter[str]() for arm in arms}
    numbers = sorted(arms[0].blocks.keys() & arms[1].blocks.keys())
    for runs in ([arm.blocks[number].run for arm in arms] for number in numbers):
        both = [read_profile(run.record.get("profile", {"absent": NOT_RECORDED})) for run in runs]
        absent = [without_none([profile.absent]) for profile in both]
        for arm, why in zip(arms, absent, strict=True):
            missing[arm.name].update(why)
        if not any(absent):
            done, trained = (run.samples_per_step for run in runs)
            sides[0].append((both[0], 1.0))
            sides[1].append((both[1], done / trained if done and trained else 1.0))
    if all(codes[NOT_RECORDED] == len(numbers) for codes in missing.values()):
        return None
    graphs = [_middle(side, "rows", "graph") for side in sides]
    kernels = [_middle(side, "kernels", "name") for side in sides]
    times = {
        arm.name: tuple(
            KernelTime(graph, kind, seconds)
            for kind, of_kind in side.items()
            for graph, seconds in of_kind.items()
        )
        for arm, side in zip(arms, graphs, strict=True)
    }
    differences = _differences(graphs, kernels)
    return WhereTimeGoes(measured.lead.name, len(sides[0]), differences, times, missing)


# A profile, and what its seconds are multiplied by.
Scaled = tuple[Profile, float]
# Seconds by class of kernels and, within it, by graph or by kernel.
Times = Mapping[str, Mapping[str, float]]


def _middle(side: Sequence[Scaled], part: str, place: str) -> Times:
    """The middle one of a part of all profiles, of each class by ``place``."""
    summed = []
    for profile, scale in side:
        seconds = Counter[tuple[str, str]]()
        for time in getattr(profile, part):
            seconds[time.kernel_class, getattr(time, place)] += time.seconds * scale
        summed.append(seconds)
    middle: dict[str, dict[str, float]] = {}
    for key in sorted(set().union(*summed)):
        middle.setdefault(key[0], {})[key[1]] = median(seconds[key] for seconds in summed)
    return middle


def _differences(graphs: Sequence[Times], kernels: Sequence[Times]) -> tuple[Difference, ...]:
    """The largest of all classes, largest first."""
    made = []
    for kind in sorted({*graphs[0], *graphs[1]}):
        ours, theirs, named, renamed = (side.get(kind, {}) for side in (*graphs, *kernels))
        before, after = math.fsum(ours.values()), math.fsum(theirs.values())
        sizes = {
            name: (renamed.get(name, 0.0) - named.get(name, 0.0)) * (after - before)
            for name in {**named, **renamed}
        }
        along = {name: size for name, size in sizes.items() if size > 0}
        places = (_largest(along), _largest(ours), _largest(theirs))
        made.append(Difference(kind, *places, before, after, after - before, share=0.0))
    made.sort(key=lambda one: -abs(one.seconds))
    whole = math.fsum(abs(one.seconds) for one in made)
    moved = [one for one in made[:SHOWN] if one.seconds != 0]
    return tuple(replace(one, share=abs(one.seconds) / whole) for one in moved)


def _largest(sizes: Mapping[str, float]) -> str:
    """The name of the largest; empty without any."""
    return max(sizes, key=lambda name: sizes[name], default="")
