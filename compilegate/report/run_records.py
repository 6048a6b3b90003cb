"""What runs recorded of themselves beside what decides: price, start, reason, loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compilegate.domain.formats import number
from compilegate.domain.judging.evidence import FullRun, SpeedRun

Run = SpeedRun | FullRun


@dataclass(frozen=True)
class LossPoint:
    """The loss at a step; ``seconds`` since the first one began, None where not recorded."""

    step: int
    loss: float | None
    seconds: float | None


def usd_of(run: Run) -> float | None:
    """What it cost."""
    return number(run.record.get("usd"))


def began_at(run: Run) -> float | None:
    """When it began, in epoch seconds."""
    return number(run.record.get("started_at"))


def reason_of(run: Run) -> str:
    """What it said of its end, empty where it said nothing."""
    return str(run.record.get("reason") or "")


def compiler_proof(run: Run) -> str:
    """What its compiler said of whether it was applied, empty where it said nothing."""
    compiler = run.record.get("compiler")
    return str(compiler.get("proof") or "") if isinstance(compiler, Mapping) else ""


def loss_curve(run: FullRun) -> list[LossPoint]:
    """Its loss in the order of the steps, each once; empty where it recorded none."""
    points = {point.step: point for point in _points(run.record.get("loss_curve"))}
    return [points[step] for step in sorted(points)]


def _points(curve: object) -> Iterator[LossPoint]:
    for point in curve if isinstance(curve, Sequence) else ():
        if not isinstance(point, Sequence) or len(point) < 2:
            continue
        step = number(point[0])
        if step is not None:
            seconds = number(point[2]) if len(point) > 2 else None
            yield LossPoint(int(step), number(point[1]), seconds)
