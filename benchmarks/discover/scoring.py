"""How well jobs were grouped: dollars in the right group, groups that mix workloads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """``right_share`` is a share of the dollars of all jobs that have a workload, None of none.

    ``mixed`` are groups with jobs of two workloads, ``taken_in`` the number of jobs in a group
    that should have been left out, ``left_out`` that of jobs in no group that have a workload.
    """

    right_share: float | None
    mixed: tuple[Hashable, ...]
    taken_in: int
    left_out: int


def score(
    groups: Sequence[Hashable | None], truths: Sequence[str | None], dollars: Sequence[float]
) -> Score:
    """Compare the groups of jobs with their workloads; all three are by job, in one order.

    A group is its chief workload's, that with the most dollars in it. Of its groups a workload has
    one that is right, which has most of its dollars. If the workload has parts
    (``WORKLOAD/PART``), one for each part may be right instead, whichever of both is more. Parts of
    one workload do not mix.

    Raises ValueError for sequences of unequal length.
    """
    paid: dict[tuple[Hashable, str], float] = defaultdict(float)
    taken_in = left_out = 0
    total = 0.0
    for group, truth, cost in zip(groups, truths, dollars, strict=True):
        if truth is None:
            taken_in += group is not None
            continue
        total += cost
        if group is None:
            left_out += 1
            continue
        paid[group, truth] += cost
    chiefs, mixed = _chiefs(paid)
    right = _right(paid, chiefs)
    return Score(right / total if total else None, tuple(mixed), taken_in, left_out)


def whole(truth: str) -> str:
    """The workload of a truth, which may be a part of it."""
    return truth.partition("/")[0]


def _chiefs(
    paid: dict[tuple[Hashable, str], float],
) -> tuple[dict[Hashable, str], list[Hashable]]:
    """Each group's chief workload, and the groups that mix."""
    sizes: dict[Hashable, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (group, truth), cost in paid.items():
        sizes[group][whole(truth)] += cost
    chiefs = {group: max(of, key=lambda name: of[name]) for group, of in sizes.items()}
    return chiefs, [group for group, of in sizes.items() if len(of) > 1]


def _right(paid: dict[tuple[Hashable, str], float], chiefs: dict[Hashable, str]) -> float:
    together: dict[str, dict[Hashable, float]] = defaultdict(lambda: defaultdict(float))
    apart: dict[str, list[tuple[float, str, Hashable]]] = defaultdict(list)
    for (group, truth), cost in paid.items():
        name = whole(truth)
        if chiefs[group] == name:
            together[name][group] += cost
            apart[name].append((cost, truth, group))
    return sum(max(*of.values(), _each_apart(apart[name])) for name, of in together.items())


def _each_apart(parts: list[tuple[float, str, Hashable]]) -> float:
    """The dollars of parts in a group of their own each, the dearest first."""
    done: set[str] = set()
    taken: set[Hashable] = set()
    right = 0.0
    for cost, truth, group in sorted(parts, key=lambda part: -part[0]):
        if truth not in done and group not in taken:
            done.add(truth)
            taken.add(group)
            right += cost
    return right
