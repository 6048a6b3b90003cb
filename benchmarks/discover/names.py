"""How training jobs are named.

Sources: ``name_from_base`` of sagemaker 2.257.7; ``_get_unique_name`` of sagemaker-train 1.27.0,
which cuts the stamp of a long name; jobs that Pipelines started, as their step lists show them in
public repositories (the execution's twelve characters, the step's first twenty, ten of chance);
SageMakerTrainingOperator of apache-airflow-providers-amazon 9.39.0
(``action_if_job_exists="timestamp"``); the tuner's ``name_from_base(short=True)`` of at most 32
characters, and candidates of Autopilot in public notebooks.
"""

from __future__ import annotations

import random
import string
from datetime import UTC, datetime
from typing import NamedTuple

from benchmarks.discover.workloads import HAND, OTHER_SCHEMES, PIPELINES, V3, Workload

LONGEST, STEP = 63, 20
_CUT_STAMP = LONGEST - len("-20261102000000") - len("-attempt2")
_RETRIES = ("-retry", "-attempt2", "-retry-1")
_OTHER_RETRIES = ("-rerun", "-r2", "-try-2")


class Tried(NamedTuple):
    """The run of that number, when it is tried, and when it was first (epoch seconds)."""

    number: int
    at: float
    first: float


def base_of(workload: Workload, number: int, at: float, *, late: bool) -> str:
    """The name without its stamp, of the run of that number and time; ``late``: once renamed."""
    base = workload.renamed[0] if workload.renamed and late else workload.base
    if workload.swept:
        base = f"{base}-{workload.sweep}-{workload.swept[number % len(workload.swept)]}"
    return f"{base}-{_time(at):%Y-%m}" if workload.moving else base


def job_name(workload: Workload, base: str, tried: Tried, draw: random.Random) -> str:
    """The name of a job; ``draw`` begins alike for every try of a run."""
    execution = characters(draw, 12, string.ascii_lowercase + string.digits)
    suffix = draw.choice(_OTHER_RETRIES if workload.scheme in OTHER_SCHEMES else _RETRIES)
    if tried.at == tried.first or not workload.retries:
        suffix = ""
    if workload.style == PIPELINES:
        chance = characters(random.Random(f"{execution}{tried.at}"), 10)
        step = f"Train-lr{base.rpartition('-lr')[2]}" if workload.swept else workload.step
        return f"pipelines-{execution}-{step[:STEP]}-{chance}"
    if workload.style == V3:
        suffix = "" if len(base) > _CUT_STAMP else suffix  # else a name would come twice
        return f"{base.replace('_', '-')}{suffix}-{_time(tried.at):%Y%m%d%H%M%S}"[:LONGEST]
    if workload.style == HAND:
        return _by_hand(workload, base, tried, suffix, draw)
    after = suffix if workload.retries == "after" else ""
    at = _time(tried.first if after else tried.at)
    stamp = f"{at:%Y-%m-%d-%H-%M-%S}-{draw.randrange(1000):03d}{after}"
    before = base if after else base + suffix
    return f"{before[: LONGEST - 1 - len(stamp)]}-{stamp}"


def _by_hand(workload: Workload, base: str, tried: Tried, suffix: str, draw: random.Random) -> str:
    stamp = _stamp(workload.scheme, tried.number, tried.first, draw)
    if suffix and workload.scheme in ("airflow", "day"):
        stamp, suffix = f"{stamp}-{int(tried.at)}", ""  # as the operator avoids a taken name
    base = base[: LONGEST - 1 - len(stamp) - len(suffix)]
    if workload.scheme in ("dated", "pipeline"):
        return f"{stamp}-{base}{suffix}"
    after = workload.retries == "after"
    return f"{base}-{stamp}{suffix}" if after else f"{base}{suffix}-{stamp}"


def _stamp(scheme: str, number: int, at: float, draw: random.Random) -> str:
    if scheme in _DATES:
        return _time(at).strftime(_DATES[scheme])
    digits = "0123456789abcdef"
    if scheme == "execution":  # Step Functions' name of an execution
        return "-".join(characters(draw, count, digits) for count in (8, 4, 4, 4, 12))
    if scheme == "build":  # of continuous integration, with the commit
        return f"{1000 + 3 * number}-{characters(draw, 7, digits)}"
    return {
        "epoch": str(int(at)),
        "hex": characters(draw, 8, digits),
        "counter": str(number + 1),
        "milliseconds": str(int(at * 1000)),
        "ulid": characters(draw, 26, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
        "branch": f"main-{characters(draw, 7, digits)}",
        "pipeline": f"ci-{4000 + 7 * number}",
        "version": f"v1-{number // 20}-{number % 20}",
        "run": f"run{number + 1}",
        "uuid8": f"{characters(draw, 8, digits)}-0",
    }[scheme]


_DATES = {
    "airflow": "%Y%m%dT%H%M%S",  # {{ ts_nodash }}
    "day": "%Y%m%d",  # {{ ds_nodash }}
    "compact": "%Y%m%d-%H%M%S",
    "dated": "%Y-%m-%d",
    "iso": "%Y-%m-%dT%H-%M-%SZ",
    "user": "alice-%Y%m%d",
    "month": "%d%b%Y-%H%M%S",
}


def tuning_name(base: str, at: float) -> str:
    """The name of a tuning job, as the SDK makes it."""
    stamp = f"{_time(at):%y%m%d-%H%M}"
    return f"{base[: 32 - 1 - len(stamp)]}-{stamp}"


def candidate_name(tuning: str, number: int, draw: random.Random) -> str:
    """The name of one of its training jobs."""
    return f"{tuning}-{number:03d}-{characters(draw, 8, '0123456789abcdef')}"


def characters(
    draw: random.Random, count: int, of: str = string.ascii_letters + string.digits
) -> str:
    """So many of them by chance."""
    return "".join(draw.choices(of, k=count))


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
