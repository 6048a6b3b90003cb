"""How far back the steps of a production run read: what they decide is as if they had read all.

A step reads the runs of a window, and a longer one where what it decides might depend on an older
run. A run takes ``longest`` seconds at most (attempts.longest_run_seconds), so that what started
or was reviewed from that long after the window's begin on is in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.followers import WATCHED
from compilegate.domain.ledger_keys import CLOCKS_APART_SECONDS
from compilegate.domain.production import probation, slower
from compilegate.domain.production.attempts import longest_run_seconds
from compilegate.domain.production.begin import Situation, flag_since, since_baseline
from compilegate.domain.production.canary import open_rounds
from compilegate.domain.production.history import DAY_SECONDS, Promotion, WorkloadHistory
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import BASELINE, Workload

# The first is about a page of the table for an hourly job, and has a run of a weekly one.
WINDOWS_DAYS = (7, 28, 112, 448)
# A review may not have seen a run that was recorded so shortly before it; both take less.
RECORD_SECONDS = 600


def windows(now: float, run: str = "") -> list[float]:
    """From when on to read, the shortest first; ``run`` is in each, the last is everything."""
    began = naming.time_of(run) if run else now
    return [*(min(now - days * DAY_SECONDS, began) for days in WINDOWS_DAYS), -math.inf]


def _complete_since(history: WorkloadHistory, longest: float) -> float:
    """From when on ``history`` has all runs, by their start, and all reviews."""
    # What was never registered does not run; who registers it has a clock of their own.
    known_since = history.since + CLOCKS_APART_SECONDS
    if any(one.revision == 1 and one.at >= known_since for one in history.registrations[:1]):
        return -math.inf
    return history.since + longest


def enough_to_begin(
    history: WorkloadHistory, now: Situation, workload: Workload, *, run: str, at: int
) -> bool:
    """Whether ``run``, which begins at epoch second ``at``, is chosen as from everything.

    ``now`` is the situation as ``history`` has it, ``workload`` what production trains.
    """
    since, flag = _complete_since(history, longest_run_seconds(workload)), now.reading.flag
    if since == -math.inf:
        return True
    # Its number follows from those of earlier runs, and whether it is held back from the last one.
    if not any(one.run < run for one in history.begun):
        return False
    if any(one.at < history.since for one in open_rounds(history, at)):
        return False
    if not flag.enabled or since <= flag_since(flag):
        return True
    if now.review is None or now.review.at < since:
        return False
    runs = [run for run in now.runs if run.started_at >= since]
    refreshed = any(run.arm == BASELINE and run.counts and run.finished for run in runs)
    row = since_baseline(replace(now, runs=runs, in_flight=()))
    return flag.state not in WATCHED or refreshed or row >= now.refresh_every - 1


@dataclass(frozen=True)
class Before:
    """What a promotion's judged runs from before a window came to; who started them beside it."""

    runs: int = 0
    launched_by: frozenset[str] = frozenset()


def before_window(
    history: WorkloadHistory, promotion: Promotion, *, longest: float
) -> Before | None:
    """What lies before the window of ``history``, by the reviews in it; None where they do not say.

    The reviews of a promotion that is permanent count its runs on, and see one more each.
    """
    since = _complete_since(history, longest)
    if since <= promotion.at:
        return Before()
    since = max(since, promotion.since)
    reviews = history.reviews_of(promotion.trial, since=math.ceil(since))
    if promotion.flag.state != probation.PERMANENT or not reviews:
        return None
    # What one has seen each with a larger count has seen as well: this one all that have a review.
    last = max(reviews, key=lambda one: (one.runs, one.at))
    reviewed = {one.run for one in reviews}
    runs = probation.watched_runs(history.runs, promotion).runs
    after = [(run.run, max(run.at, run.ended_at) - last.at) for run in runs]
    if any(-RECORD_SECONDS < seconds <= 0 and run not in reviewed for run, seconds in after):
        return None
    unseen = sum(seconds > 0 for _, seconds in after)
    return Before(last.runs + unseen - len(runs), frozenset(last.launched_by))


def enough_to_review(
    history: WorkloadHistory,
    promotion: Promotion,
    evidence: Mapping[str, Any] | None,
    *,
    longest: float,
) -> bool:
    """Whether a review comes out as from everything; ``evidence`` as in review.py."""
    since = _complete_since(history, longest)
    if since == -math.inf:
        return True
    runs = [run for run in history.runs if run.started_at >= since]
    judged = probation.watched_runs(runs, promotion).runs
    row = probation.row_at_the_end(judged, promotion)
    is_quiet = promotion.flag.state == probation.PERMANENT and not row
    if since <= promotion.at:
        if evidence is None or evidence["quality"].get("history") or is_quiet:
            return True
        earlier = [run for run in runs if run.started_at < promotion.at]
        return len(probation.history_runs(evidence, earlier)) >= probation.HISTORY_RUNS
    if evidence is None:
        return any(
            one.at >= since for one in history.reviews_of(promotion.trial, since=promotion.at)
        )
    # Without a run that went well the row of those that did not may have begun earlier.
    mine = [run for run in judged if run.arm == promotion.candidate]
    went_well = any(run.finished and not run.without_change for run in mine)
    return (
        is_quiet
        and went_well
        and _enough_for_speed(runs, promotion.candidate, since)
        and before_window(history, promotion, longest=longest) is not None
    )


def _enough_for_speed(runs: Sequence[ProductionRun], candidate: str, since: float) -> bool:
    """Whether the sum of a lost speed-up goes on from ``runs``, which are all since ``since``."""
    points = [point for _, point in slower.sound_runs(runs, candidate)]
    if not any(point.is_baseline for point in points[-1 - slower.MOST_AFTER :]):
        return len(points) > slower.MOST_AFTER  # no baseline run is compared
    place = max(at for at, point in enumerate(points) if point.is_baseline)
    earlier = [point for point in points[:place] if not point.is_baseline]
    return len(earlier) >= slower.BEFORE or since <= points[place].at - slower.NEAR_SECONDS
