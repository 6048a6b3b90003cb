"""The judge's cumulative sums, as its own replay of a probation has gone through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.judging.judge import replay_probation
from compilegate.domain.judging.monitor import Monitor
from compilegate.report.story.tale import Tale


@dataclass
class Sum:
    """One watch: where its sum stood after each run; an alarm is a sum above ``limit``.

    ``points`` are (run number, sum, arm, confirming run).
    """

    key: str
    noun: str
    limit: float
    shift: float
    points: list[tuple[int, float, str, bool]] = field(default_factory=list)


def watched_sums(tale: Tale) -> dict[str, Sum]:
    """The sums of the latest promotion's probation; empty where no evidence can be read."""
    evidence = tale.source["evidence"]
    if evidence is None:
        return {}
    found: dict[str, Sum] = {}

    def seen(arm: str, run: FullRun, monitors: Mapping[str, Monitor]) -> None:
        place = tale.places.get(str(run.detail.get("job")))
        if place is None:
            return
        for key, monitor in monitors.items():
            known = found.setdefault(key, Sum(key, monitor.noun, monitor.limit, monitor.shift))
            known.points.append((place, monitor.total, arm, run.confirm))

    try:
        replay_probation(evidence, seen)
    except InvalidEvidenceError:
        return {}
    return found
