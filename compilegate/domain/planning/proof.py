"""How many full runs margin and history call for, by the judge's own power (statistics.py)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate.domain.formats import significant
from compilegate.domain.judging.quality import ENOUGH_HISTORY, underpowered
from compilegate.domain.judging.statistics import Design, Samples, design_for, looks
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Workload

# Full runs of a candidate where the spread of the metric from run to run is unknown.
ASSUMED_RUNS = 3
SHADOW, HYBRID = "shadow", "hybrid"


@dataclass(frozen=True)
class Proof:
    """Full runs of one candidate that a proof probably takes, and those that it may take.

    ``rounds`` of one candidate: one to each look, and one before the first look where a single
    run beside a long history may already end it. ``basis`` says what the numbers rest on,
    ``refused`` why no trial should begin. ``mode`` is who makes the runs: the trial itself
    (shadow), production as it trains anyway (canary), or the trial the first ones (hybrid).
    """

    runs: int
    n_max: int
    history: int
    basis: str
    refused: Reason | None = None
    mode: str = SHADOW

    def extra_runs(self, runs: int) -> int:
        """Those of a candidate's ``runs`` that the trial makes itself, as the judge would ask."""
        if self.mode == SHADOW:
            return runs
        return min(runs, 1 if self.history >= ENOUGH_HISTORY else 2) * (self.mode == HYBRID)

    def rounds(self, runs: int, *, later: bool = False) -> tuple[tuple[int, int], ...]:
        """Extra runs of a candidate and of the baseline, round by round, until it has ``runs``."""
        extra = self.extra_runs(runs)
        if self.mode != SHADOW:
            ends = [extra] if extra else []
        else:
            first = [1] if self.history >= ENOUGH_HISTORY else []
            ends = [*first, *(n for n in looks(self.n_max) if n <= extra)]
        beside = [0, *(self.baseline_runs(end, later=later) for end in ends)]
        steps = zip(itertools.pairwise((0, *ends)), itertools.pairwise(beside), strict=True)
        return tuple((end - start, base - before) for (start, end), (before, base) in steps)

    def production_runs(self, runs: int) -> int:
        """Production runs that make up the rest, the baseline's of the same weeks included."""
        extra = self.extra_runs(runs)
        # There the arms take turns, whatever history there is: turns cost nothing.
        beside = runs - (self.baseline_runs(extra) if extra else 0)
        return runs - extra + max(beside, 0) if extra < runs else 0

    def baseline_runs(self, runs: int, *, later: bool = False) -> int:
        """Baseline runs beside ``runs`` of a candidate: as many.

        To a ``later`` candidate those beside the one before are history, but for the last.
        """
        return max(runs - later, 0)


def plan_proof(workload: Workload, *, candidates: int, mode: str = SHADOW) -> Proof | None:
    """The full runs of each of so many candidates; None if too few production runs are left.

    ``mode`` is the one that the trial uses, which may be another than policy asks for.
    """
    quality = workload.quality
    design = design_for(
        replace(workload.policy, quality_runs=mode),
        history=len(quality.history),
        candidates=candidates,
        runs_remaining=workload.schedule.runs_per_week * WEEKS_PER_YEAR,
    )
    if design is None:
        return None
    history = Samples((), (), quality.history)
    spread = math.sqrt(history.pooled_variance or 0.0)
    if len(quality.history) < ENOUGH_HISTORY or not spread:
        runs, basis = _assumed(workload, design)
        return Proof(runs, design.n_max, design.history, basis, mode=mode)
    needed, refused = design.runs_needed(spread / quality.margin), None
    if failure := underpowered(history, quality.margin, design):
        fix = "widen quality.margin to that, or use a metric that varies less"
        refused = Reason("underpowered", f"{quality.metric}: {failure.reason}", fix=fix)
    chance = (
        "even the last look proves it with less than 80%"
        if needed is None
        else f"{needed} runs of a candidate prove it with 80% chance if nothing is lost"
    )
    basis = (
        f"{quality.metric} differs by {significant(spread)} from run to run over "
        f"{len(quality.history)} past runs, {significant(spread / quality.margin, 2)} of the "
        f"margin of {quality.margin:g}: {chance}"
    )
    return Proof(needed or design.n_max, design.n_max, design.history, basis, refused, mode)


def _assumed(workload: Workload, design: Design) -> tuple[int, str]:
    """Full runs where the spread of the metric is unknown, and what they rest on."""
    quality = workload.quality
    runs = min(ASSUMED_RUNS, design.n_max)
    history = "do not differ" if quality.history else "are on record"
    provable = design.provable_margin(runs)
    enough = (
        f", enough where it differs by {significant(quality.margin / provable, 2)} or less"
        if provable
        else ""
    )
    return runs, (
        f"{len(quality.history)} past runs {history}, so the spread of {quality.metric} from run "
        f"to run is unknown: {runs} runs of a candidate are assumed{enough}"
    )
