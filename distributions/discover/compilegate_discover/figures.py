"""What the jobs of a workload say of its schedule, its length and its cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from compilegate.domain.arithmetic import deviation, median
from compilegate.domain.economics import WEEKS_PER_YEAR
from compilegate_discover.grouping import Group
from compilegate_discover.job import Job

HOUR, DAY, WEEK = 3600.0, 86400.0, 604800.0
WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
# Of the starts that are within one hour, or on one weekday: from here on it is a habit.
HABIT = 0.8
# Runs from which a schedule is seen, and past results from which a spread is.
LEAST_RUNS, LEAST_RESULTS = 3, 5
# A workload has ended after so many times its usual gap without a run.
GAPS_TO_END = 3
UNKNOWN_GAP = 15 * DAY  # of less than LEAST_RUNS
# Of the runs' spread, standard deviations: what a margin is proposed as.
MARGIN_DEVIATIONS = 2
MOST_RESULTS = 50
# Names of metrics, the first that is in one: of held-out data, and which way is better.
HELD_OUT = ("val", "eval", "test", "holdout")
GOALS = {
    "minimize": ("loss", "error", "rmse", "mae", "mse", "mape", "perplexity", "ppl", "wer",
                 "cer", "logloss", "deviance"),
    "maximize": ("acc", "auc", "f1", "precision", "recall", "bleu", "rouge", "ndcg", "map", "mrr",
                 "score", "r2", "iou", "dice", "reward", "psnr", "ssim"),
}  # fmt: skip
Prices = Callable[[str], float | None]


@dataclass(frozen=True)
class Figures:
    """USD and hours; None where the jobs do not say it.

    ``runs`` completed. ``usd_seen`` is what is billed for jobs with a known price, ``unpriced``
    the instance types without. ``usd_per_year`` goes on as before; it is None for what has ended,
    and for fewer than LEAST_RUNS runs.
    """

    runs: int
    failed: int
    first: float
    last: float
    ended: bool
    runs_per_week: float | None
    starts: str
    run_hours: float | None
    usd_seen: float
    usd_by_type: Mapping[str, float]
    unpriced: tuple[str, ...]
    usd_per_year: float | None


def figures_of(group: Group, prices: Prices, *, now: float) -> Figures:
    """The group's figures; ``prices`` are USD per hour of an instance type, ``now`` an epoch."""
    done = [job for job in group.jobs if job.completed]
    first, last = group.jobs[0].created, group.jobs[-1].created
    rate = _rate(done)
    gap = max(WEEK / rate, DAY) if rate else UNKNOWN_GAP
    usd = defaultdict[str, float](float)
    unpriced: set[str] = set()
    for job in group.jobs:
        for kind, hours in billed_hours(job):
            price = prices(kind)
            if price is None:
                unpriced.add(kind)
            else:
                usd[kind] += hours * price
    total = sum(usd.values())
    ended = now - last > GAPS_TO_END * gap
    known = rate is not None and not unpriced and not ended
    same = [job.seconds for job in done if job.seconds and job.instances == done[-1].instances]
    return Figures(
        runs=len(done),
        failed=sum(job.status == "Failed" for job in group.jobs),
        first=first,
        last=last,
        ended=ended,
        runs_per_week=rate,
        starts=_habit(done),
        run_hours=median(same) / HOUR if same else None,
        usd_seen=total,
        usd_by_type=usd,
        unpriced=tuple(sorted(unpriced)),
        usd_per_year=total / len(done) * rate * WEEKS_PER_YEAR if known and rate else None,
    )


def _rate(done: Sequence[Job]) -> float | None:
    """Runs per week: those after the first over the time since it, at least of a week."""
    if len(done) < LEAST_RUNS:
        return None
    span = done[-1].created - done[0].created
    return (len(done) - 1) / span * WEEK if span >= WEEK else float(len(done))


def billed_hours(job: Job) -> list[tuple[str, float]]:
    """Instance types and hours of the job, with its warm pool's time after it.

    Billed are ``BillableTimeInSeconds`` of each instance, which on spot capacity is less than the
    time trained. A job that has not ended has no billed time yet.
    """
    seconds = (job.billable or 0.0) + job.retained
    return [(kind, seconds * count / HOUR) for kind, count in job.instances]


def _habit(done: Sequence[Job]) -> str:
    """When most runs start, in UTC; empty where it is not the same hour."""
    if len(done) < LEAST_RUNS:
        return ""
    starts = [datetime.fromtimestamp(job.created, UTC) for job in done]
    minutes = [at.hour * 60 + at.minute for at in starts]
    (hour, _), *_ = Counter(minute // 60 for minute in minutes).most_common()
    near = [minute for minute in minutes if (minute - hour * 60 + 30) % 1440 <= 120]
    if len(near) < HABIT * len(starts):
        return ""
    (weekday, often), *_ = Counter(at.weekday() for at in starts).most_common()
    on = f", {WEEKDAYS[weekday]}" if often >= HABIT * len(starts) else ""
    return f"about {hour:02}:00 UTC{on}"


@dataclass(frozen=True)
class Metric:
    """The metric that a trial might compare; ``goal`` and ``margin`` None where only guessing.

    ``history`` are the last results of runs with the newest run's image and settings.
    """

    name: str
    goal: str | None
    margin: float | None
    history: tuple[float, ...]


def metric_of(group: Group) -> Metric | None:
    """Of the newest run's metrics the one that most looks like a result of held-out data."""
    newest = group.newest
    ranked = sorted((_rank(name), name) for name, _ in newest.metrics)
    if not ranked:
        return None
    name = ranked[0][1]
    own = newest.setup
    history = [
        value
        for job in group.jobs
        if job.completed and (job.setup.image, job.setup.settings) == (own.image, own.settings)
        for key, value in job.metrics
        if key == name
    ][-MOST_RESULTS:]
    spread = deviation(history) if len(history) >= LEAST_RESULTS else 0.0
    margin = float(f"{MARGIN_DEVIATIONS * spread:.2g}") if spread else None
    return Metric(name, _goal(name), margin, tuple(history))


def _rank(name: str) -> tuple[bool, bool, bool]:
    low = name.lower()
    held_out = any(word in low for word in HELD_OUT)
    goal = _goal(name)
    return not held_out, goal is None, goal == "minimize"


def _goal(name: str) -> str | None:
    low = name.lower()
    return next((goal for goal, words in GOALS.items() if any(one in low for one in words)), None)
