"""An account's training jobs as SageMaker's Search returns them, and the workload of each.

What groups jobs is measured on these (``scoring.py``), so nothing here knows how that is done.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from benchmarks.discover import names
from benchmarks.discover.records import Outcome, Run, record
from benchmarks.discover.workloads import MIXED, ONE_A_DAY, STYLES, Workload, draw_workloads

NOW = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
DAY, HOUR = 86_400.0, 3600.0
# Of a hundred jobs: those of tuning jobs, of Autopilot and of Compilegate itself, to be left out.
_LEFT_OUT, _LEFT_OUT_MIXED = 0.03, 0.12
_OUTCOMES = (
    (Outcome.COMPLETED, 90), (Outcome.FAILED, 6), (Outcome.STOPPED, 2), (Outcome.NO_CAPACITY, 2),
)  # fmt: skip


class _Planned(NamedTuple):
    """A job to be; a negative workload is one to leave out, of the workload before it."""

    at: float
    workload: int
    number: int
    first: float
    outcome: Outcome
    late: bool


def generate(
    seed: int, style: str, workloads: int, jobs: int
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """So many jobs of so many workloads, the newest first, each with its workload's id.

    A job's record is what Search has as ``TrainingJob``, with times as datetimes. None for a job
    to leave out; ``WORKLOAD/PART`` where it is unclear whether parts are one workload
    (``workloads.py``). The same arguments give the same jobs. Records are made one at a time; what
    is kept is some hundred bytes of each. Raises ValueError for an unknown style.
    """
    if style not in STYLES:
        raise ValueError(f"style: {style!r} is unknown; use one of {', '.join(STYLES)}")
    draw = random.Random(f"{seed} {style}")
    drawn = draw_workloads(draw, style, workloads)
    aside = int(jobs * (_LEFT_OUT_MIXED if style == MIXED else _LEFT_OUT))
    days = _days(drawn, jobs - aside)
    planned = _planned(drawn, days, draw)
    while len(planned) < jobs - aside:
        days *= 1.2
        planned = _planned(drawn, days, draw)
    # Too many: the oldest of frequent workloads are left away, so that every workload stays.
    planned.sort(key=lambda job: (_is_frequent(drawn[job.workload]), -job.at))
    planned = [*planned[: jobs - aside], *_left_out(drawn, days, aside, draw)]
    planned.sort(reverse=True)
    for one in planned:
        yield _rendered(seed, one, drawn[one.workload if one.workload >= 0 else ~one.workload])


def _is_frequent(workload: Workload) -> bool:
    return workload.every is not None and workload.every <= 1


def _days(drawn: list[Workload], jobs: int) -> float:
    """In which so many jobs run."""
    a_day = sum(1 / one.every for one in drawn if one.every is not None)
    return max(jobs / a_day if a_day else 30.0, 2.0)


def _planned(drawn: list[Workload], days: float, draw: random.Random) -> list[_Planned]:
    return [job for index, one in enumerate(drawn) for job in _of_workload(index, one, days, draw)]


def _of_workload(
    index: int, workload: Workload, days: float, draw: random.Random
) -> Iterator[_Planned]:
    starts = _starts(workload, days, draw)
    for number, start in enumerate(starts):
        late = number >= len(starts) / 2
        outcome = draw.choices(*zip(*_OUTCOMES, strict=True))[0]
        yield _Planned(start, index, number, start, outcome, late)
        failed = outcome in (Outcome.FAILED, Outcome.NO_CAPACITY)
        if failed and workload.retries and draw.random() < 0.8:
            again = start + 1.1 * HOUR * workload.hours + draw.randrange(300, 1800)
            if again < NOW:
                yield _Planned(again, index, number, start, Outcome.COMPLETED, late)


def _starts(workload: Workload, days: float, draw: random.Random) -> list[float]:
    if workload.every is None:
        return sorted(NOW - DAY * draw.uniform(0.02, days) for _ in range(2))
    every = min(workload.every, days / 2)
    count = int(days / every)
    today = NOW - DAY + HOUR * workload.hour
    by_hand = draw.random() < 0.15 and workload.scheme not in ONE_A_DAY
    spread = 0.3 * DAY * every if by_hand else 600
    starts = (today - DAY * every * back + spread * draw.random() for back in range(count))
    return sorted(round(start, 3) for start in starts if start < NOW)


def _left_out(
    drawn: list[Workload], days: float, jobs: int, draw: random.Random
) -> Iterator[_Planned]:
    """Batches of candidates, and trials, each of the program of a workload."""
    while jobs > 0:
        index = draw.randrange(len(drawn))
        first = NOW - DAY * draw.uniform(0.1, days)
        outcome = draw.choice((Outcome.TUNED, Outcome.TUNED, Outcome.AUTOML, Outcome.OWN))
        for number in range(min(jobs, draw.randrange(6, 30))):
            at = first + number * draw.uniform(120, 900)
            yield _Planned(min(at, NOW - 60), ~index, number, first, outcome, late=False)
        jobs -= number + 1


def _rendered(seed: int, one: _Planned, workload: Workload) -> tuple[dict[str, Any], str | None]:
    # Both tries of a run begin with the same chances, so that their names fit each other.
    draw = random.Random(f"{seed} {workload.truth} {one.first} {one.number}")
    base = names.base_of(workload, one.number, one.first, late=one.late)
    run = Run(one.at, one.number, one.outcome, base, one.late)
    if one.workload < 0:
        name = _name_left_out(one, base, draw)
        return record(workload, run, name, draw, NOW), None
    name = names.job_name(workload, base, names.Tried(one.number, one.at, one.first), draw)
    later = random.Random(f"{draw.random()} {one.at}")
    truth = workload.renamed[1] if workload.renamed and one.late else workload.truth
    return record(workload, run, name, later, NOW), truth


def _name_left_out(one: _Planned, base: str, draw: random.Random) -> str:
    batch = random.Random(f"{base} {one.first}")
    if one.outcome is Outcome.OWN:
        trial = names.characters(batch, 8, "0123456789abcdefghjkmnpqrstvwxyz")
        return f"cg-{base[:30]}-{trial}-q-{one.number}"
    tuning = names.tuning_name(base, one.first)
    if one.outcome is Outcome.AUTOML:
        tuning = f"tuning-job-1-{names.characters(batch, 18, '0123456789abcdef')}"
    return names.candidate_name(tuning, one.number + 1, draw)
