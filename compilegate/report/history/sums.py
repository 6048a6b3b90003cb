"""The judge's cumulative sums, as its own replay of a probation has gone through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence import FullRun
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.monitor import Monitor
from compilegate.domain.judging.production import replay_probation
from compilegate.report.history.view import HistoryView


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


def watched_sums(view: HistoryView) -> dict[str, Sum]:
    """The sums of the latest promotion's probation; empty where no evidence can be read."""
    evidence = view.source["evidence"]
    if evidence is None:
        return {}
    sums: dict[str, Sum] = {}

    def seen(arm: str, run: FullRun, monitors: Mapping[str, Monitor]) -> None:
        place = view.places.get(str(run.detail.get("job")))
        if place is None:
            return
        for key, monitor in monitors.items():
            one = sums.setdefault(key, Sum(key, monitor.noun, monitor.limit, monitor.shift))
            one.points.append((place, monitor.total, arm, run.confirm))

    try:
        replay_probation(read_evidence(evidence), seen)
    except InvalidEvidenceError:
        return {}
    return sums
