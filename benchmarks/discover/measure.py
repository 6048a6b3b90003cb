"""How well `compilegate discover` groups the jobs of generated accounts, and what it needs.

    .venv/bin/python -m benchmarks.discover.measure accuracy --seeds 1 2 3
    .venv/bin/python -m benchmarks.discover.measure reading --jobs 1000 10000 60000

`reading` answers as Search does, a page of 100 at a time, newest first.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3

from benchmarks.discover.accounts import NOW, STYLES, generate
from benchmarks.discover.scoring import score
from compilegate.facts import load_facts
from compilegate_discover.account import Account
from compilegate_discover.figures import billed_hours
from compilegate_discover.grouping import group_jobs
from compilegate_discover.job import Reader

REGION = "us-east-1"


def accuracy(seed: int, style: str, workloads: int, jobs: int) -> dict[str, Any]:
    """The score of one account, USD at the shipped prices."""
    reader, facts = Reader(REGION), load_facts()
    kept, truths = [], []
    for record, truth in generate(seed, style, workloads, jobs):
        job = reader.job(record)
        kept.append(job)
        truths.append(truth)
    begun = time.perf_counter()
    groups = group_jobs(job for job in kept if job is not None)
    seconds = time.perf_counter() - begun
    of_job = {id(job): place for place, group in enumerate(groups) for job in group.jobs}
    usd = []
    for job in kept:
        prices = [] if job is None else [(facts.price(kind), h) for kind, h in billed_hours(job)]
        usd.append(sum(price.usd_per_hour * hours for price, hours in prices if price))
    got = score([None if job is None else of_job[id(job)] for job in kept], truths, usd)
    programs = (len({job.setup.program for job in group.jobs}) for group in groups)
    return {
        "seed": seed, "style": style, "right": got.right_share, "mixed": len(got.mixed),
        "two_programs": sum(number > 1 for number in programs), "taken_in": got.taken_in,
        "left_out": got.left_out, "groups": len(groups), "seconds": seconds,
    }  # fmt: skip


class Pages:
    """SageMaker's Search over a generated account."""

    def __init__(self, jobs: int) -> None:
        made = (record for record, _ in generate(1, "mixed", 400, jobs))
        self._records, self._next = iter(made), None

    def search(self, **request: Any) -> dict[str, Any]:
        """The next page of the interval that the filters name."""
        begin, end = (
            datetime.fromisoformat(one["Value"]) for one in request["SearchExpression"]["Filters"]
        )
        found = [*itertools.islice(self._within(begin, end), request["MaxResults"])]
        more = {"NextToken": "more"} if len(found) == request["MaxResults"] else {}
        return {"Results": [{"TrainingJob": one} for one in found], **more}

    def _within(self, begin: datetime, end: datetime) -> Iterator[Any]:
        while True:
            one = self._next or next(self._records, None)
            self._next = one
            if one is None or one["CreationTime"] < begin:
                return
            self._next = None
            if one["CreationTime"] < end:
                yield one


def reading(jobs: int) -> dict[str, Any]:
    """Seconds, requests and the process's memory of one account with the real rate."""
    pages = Pages(jobs)
    boto3.client("sagemaker", region_name=REGION)  # its model is a part of the memory
    account = Account(lambda *_: pages, most=2000)
    begun = time.perf_counter()
    until = datetime.fromtimestamp(NOW, UTC) + timedelta(days=1)
    groups = group_jobs(account.jobs(REGION, until - timedelta(days=400), until))
    return {
        "jobs": jobs, "seconds": time.perf_counter() - begun, "requests": account.requests,
        "grouped": sum(len(group.jobs) for group in groups), "groups": len(groups),
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def main() -> None:
    """Print a line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("accuracy", "reading"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--styles", nargs="+", default=[*STYLES])
    parser.add_argument("--workloads", type=int, default=400)
    parser.add_argument("--jobs", type=int, nargs="+", default=[60_000])
    given = parser.parse_args()
    if given.what == "reading":
        for jobs in given.jobs:
            print({key: round(value, 1) for key, value in reading(jobs).items()}, flush=True)
        return
    for style in given.styles:
        rows = [accuracy(seed, style, given.workloads, given.jobs[0]) for seed in given.seeds]
        for row in rows:
            print(row, flush=True)
        print(style, "mean", statistics.fmean(row["right"] for row in rows), flush=True)


if __name__ == "__main__":
    main()
