"""Which full runs the quality gate compares for one candidate, and what is history to it.

The baseline's runs of *the same weeks* as a candidate's are those from its own first run on,
and the last one before it. Earlier ones of the trial were made in the weeks of another
candidate: they are history, beside what the team gave. Were they counted as of today, a metric
that rises by a twentieth of its spread every run would promote one in six second candidates
that lose the whole margin.

Runs of one seed on the same data are no replicates of each other: a second one says how much a
machine's arithmetic varies, not how much training does. The first of them counts. A run without
a recorded seed counts; data of which nothing is recorded is taken to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilegate.domain.judging.evidence import Arm, Evidence, FullRun, data_of, finished, metrics
from compilegate.domain.judging.noninferiority import Samples


@dataclass(frozen=True)
class ComparedRuns:
    """Finished runs in the order of time; ``earlier`` are the baseline's of weeks before.

    ``repeated`` are the candidate's that only repeat a seed.
    """

    candidate: tuple[FullRun, ...]
    baseline: tuple[FullRun, ...]
    earlier: tuple[FullRun, ...]
    repeated: int = 0


def compared_runs(candidate: Arm, evidence: Evidence) -> ComparedRuns:
    """The runs that count for this candidate.

    Before its first run the baseline's last one will be the one before it.
    """
    every = finished(candidate.quality)
    ours, theirs = replicates(every), replicates(finished(evidence.baseline.quality))
    before = [run for run in theirs if not ours or run.order < ours[0].order]
    split = max(len(before) - 1, 0)
    return ComparedRuns(
        candidate=tuple(ours),
        baseline=tuple(theirs[split:]),
        earlier=tuple(theirs[:split]),
        repeated=len(every) - len(ours),
    )


def replicates(runs: Sequence[FullRun]) -> list[FullRun]:
    """The runs without those that repeat a seed on the same data."""
    seen: set[tuple[int, str | None]] = set()
    kept = []
    for run in runs:
        draw = None if run.seed is None else (run.seed, data_of(run))
        if draw is None or draw not in seen:
            kept.append(run)
        if draw is not None:
            seen.add(draw)
    return kept


def samples_of(candidate: Arm, evidence: Evidence) -> Samples:
    """The final metrics that the gate compares, higher is better."""
    runs = compared_runs(candidate, evidence)
    orders = [run.order for run in runs.candidate]
    return Samples(
        candidate=evidence.oriented(metrics(runs.candidate)),
        baseline=evidence.oriented(metrics(runs.baseline)),
        history=evidence.oriented([*evidence.quality.history, *metrics(runs.earlier)]),
        after=tuple(sum(order < run.order for order in orders) for run in runs.baseline),
    )
