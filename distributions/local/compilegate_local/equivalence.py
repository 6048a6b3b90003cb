"""``compilegate try --equivalence``: the equivalence check of an arm, and where its error is from.

An arm's process measures, as its job would, then diagnoses what is over a bound; the table of
faults judges here as in a trial (compilegate/domain/judging/equivalence.py). Nothing here knows
what a deployment has revoked.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from compilegate.domain.codec import DocumentError, read, write
from compilegate.domain.compilers import NO_COMPILER, compiler_named
from compilegate.domain.judging.checks import FIRST, read_check
from compilegate.domain.judging.equivalence import EquivalenceFinding, State, examined
from compilegate.facts import load_facts

STEPS = 4  # what the check compares
CHECK_SECONDS = 180.0
ROWS = 12  # of groups that a screen shows
REPORT, STAY_OFF = "report", "stay_off"  # beside the remedies that helped
NOT_MADE = EquivalenceFinding(State.UNEXAMINED, "its process ended without a check")


@dataclass(frozen=True)
class Group:
    """Tensors of modules at one place of every layer; figures are of the worst, ``where``."""

    part: str
    arithmetic: str
    bound: float
    group: str
    tensors: int
    where: str
    error: float | None
    eager_error: float | None
    ratio: float | None


@dataclass(frozen=True)
class Failing:
    """The part of the check that is furthest over its bound."""

    part: str
    arithmetic: str
    where: str
    step: int | None
    ratio: float | None
    bound: float


@dataclass(frozen=True)
class Graph:
    """The graph that is worst by itself, numbered in the order of compilation."""

    number: int
    ratio: float | None
    at: str | None
    modules: tuple[str, ...]
    operators: int


@dataclass(frozen=True)
class Operator:
    """One that is left of the graph, with its place in the code and its module."""

    operator: str
    at: str | None
    module: str | None


@dataclass(frozen=True)
class Subsystem:
    """What PyTorch's bisector blames."""

    name: str
    detail: str | None


@dataclass(frozen=True)
class Remedy:
    """What was tried; ``modules`` are those that it leaves uncompiled."""

    remedy: str
    modules: tuple[str, ...]
    ratio: float | None
    helps: bool


@dataclass(frozen=True)
class Reproducer:
    """The file beside the evidence; whether a process of its own showed the error."""

    file: str
    shows: bool


@dataclass(frozen=True)
class Ended:
    """Why a diagnosis is not complete."""

    code: str
    detail: str


@dataclass(frozen=True)
class Diagnosis:
    """What an arm's process left (training/compilegate_runtime/diagnosis)."""

    schema: int
    groups: tuple[Group, ...]
    failing: Failing | None
    stages: Mapping[str, float | None]
    stage: str | None
    graphs: int | None
    graph: Graph | None
    operators: tuple[Operator, ...]
    subsystem: Subsystem | None
    remedies: tuple[Remedy, ...]
    reproducer: Reproducer | None
    ended: Ended | None
    seconds: float


class Asked(NamedTuple):
    """Steps of an arm, seconds that it gets beside its time limit, and variables that say so."""

    steps: int
    seconds: float
    variables: Mapping[str, str]


def asked(limit_seconds: float) -> Asked:
    """For the check, and a diagnosis of so many seconds at most."""
    table = load_facts().faults
    bounds = {one.kind_of_device: table.bounds_of(one) for one in table.classes}
    diagnosis = {"bounds": bounds, "limit_seconds": limit_seconds}
    variables = {
        "COMPILEGATE_EQUIVALENCE": FIRST,
        "COMPILEGATE_EQUIVALENCE_SECONDS": str(CHECK_SECONDS),
        "COMPILEGATE_DIAGNOSIS": json.dumps(diagnosis),
    }
    return Asked(STEPS, CHECK_SECONDS + limit_seconds, variables)


def of_arm(summary: Mapping[str, Any], evidence: Path, place: Path) -> dict[str, Any] | None:
    """``equivalence`` of an arm's document; None of one that does not compile.

    A reproducer becomes the file ``place``, with its inputs beside it.
    """
    if compiler_named(str((summary.get("compiler") or {}).get("requested"))) is NO_COMPILER:
        return None
    figures, finding = summary.get("equivalence"), NOT_MADE
    if figures is not None:
        finding = examined(read_check(figures), load_facts().faults)
    diagnosis, kept = _diagnosis(summary.get("diagnosis")), None
    if diagnosis and diagnosis.reproducer:
        kept = _kept(evidence / diagnosis.reproducer.file, place)
    return {
        "state": finding.state,
        "reason": finding.reason,
        "figures": figures,
        "diagnosis": write(diagnosis) if diagnosis else None,
        "advice": list(_advice(diagnosis)) if diagnosis else [],
        "reproducer": kept,
    }


def fails(checked: Mapping[str, Any] | None) -> bool:
    """Whether a part of the check is over its bound."""
    if checked is None:
        return False
    diagnosis = checked["diagnosis"] or {"failing": None}
    return checked["state"] == State.FAILED or diagnosis["failing"] is not None


def shown(checked: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a screen shows as text beside the document."""
    diagnosis = (checked or {}).get("diagnosis") or {"groups": [], "stages": {}}
    check = read_check((checked or {}).get("figures"))
    cells = [
        (
            group["group"], f"{group['part']}.{group['arithmetic']}", str(group["tensors"]),
            *(_figure(group[key]) for key in ("error", "eager_error", "ratio", "bound")),
        )
        for group in diagnosis["groups"][:ROWS]
    ]  # fmt: skip
    stages = [f"{name} {_figure(ratio)}" for name, ratio in diagnosis["stages"].items()]
    return {
        "groups": cells,
        "stages": ", ".join(stages),
        "unseen": check.unseen if check else (),
        "job_class": check.job_class.words if check and check.job_class else "",
    }


def _figure(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.2g}"


def _diagnosis(document: object) -> Diagnosis | None:
    """None where the process was ended before it had one."""
    try:
        return read(Diagnosis, document)
    except DocumentError:
        return None


def _advice(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """What to do about what is over its bound, by what was tried."""
    if diagnosis.failing is None:
        return
    # The innermost region that helps is the last that was tried.
    helping = {one.remedy: one for one in diagnosis.remedies if one.helps}
    for remedy in helping.values():
        names = [_place(name) for name in remedy.modules[:1]]
        yield {"advice": remedy.remedy, "place": "".join(names), "ratio": remedy.ratio}
    if not helping:
        yield {"advice": STAY_OFF, "place": "", "ratio": None}
    if diagnosis.reproducer and diagnosis.reproducer.shows:
        yield {"advice": REPORT, "place": "", "ratio": None}


def _place(module: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in module.split("."))


def _kept(script: Path, place: Path) -> str | None:
    if not script.is_file():
        return None
    for ending in (".py", ".pt"):
        source = script.with_suffix(ending)
        if source.is_file():
            shutil.copyfile(source, place.with_suffix(ending))
    return str(place)
