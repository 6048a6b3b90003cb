"""Asks an AWS account about its training jobs; changes nothing.

Shapes: botocore's models of Search, ListTrainingJobs, DescribeTrainingJob, GetMetricData and
GetCostAndUsage. What a call is refused is noted with what is then missing, and the rest goes on.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as Unconnected

from compilegate.adapters.stores import error_code
from compilegate.domain.arithmetic import mean
from compilegate.domain.facts import Facts
from compilegate.domain.formats import plural
from compilegate_discover.grouping import Group
from compilegate_discover.job import Job, Reader
from compilegate_discover.proposal import Measured

Clients = Callable[[str, str], Any]
# Calls of Search a second, and of List and Describe, which have lower limits.
SEARCHES, DESCRIPTIONS = 5.0, 2.0
PAGE = 100
# Each search is of so many days: one answer in many pages would have to stay whole to the end.
SLICE = timedelta(days=7)
DENIED = (
    "AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "UnknownOperationException",
)  # fmt: skip
UNREACHED = (Unconnected, HTTPClientError)
NAMESPACE = "/aws/sagemaker/TrainingJobs"
# CloudWatch: metrics of one call; days that points of a minute and of five minutes are kept.
METRICS_AT_ONCE, MINUTES_KEPT, FIVE_KEPT = 500, 14, 62
# Newest runs of a workload whose utilization is read, and the share of a run left out at each end.
MEASURED_RUNS, MARGIN = 3, 0.05
COSTS_REGION = "us-east-1"  # Cost Explorer's only endpoint in the partition aws
SERVICE = "Amazon SageMaker"
_TRAINING = re.compile(r"(?:[A-Z0-9]+-)?Train(?:ing)?[^:]*:(?P<type>ml\.[a-z0-9-]+\.[a-z0-9-]+)")


class Pace:
    """Lets at most so many calls through a second."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep, self._next = clock, sleep, 0.0

    def wait(self, per_second: float) -> None:
        """Return when the next call may be made."""
        now = self._clock()
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + 1 / per_second


@dataclass
class Account:
    """One account of the environment's credentials; ``notes`` say what is missing, for people.

    ``unread`` are regions of which no job could be read.
    """

    clients: Clients
    most: int
    pace: Pace = field(default_factory=Pace)
    notes: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    requests: int = 0

    def jobs(self, region: str, since: datetime, until: datetime) -> Iterator[Job]:
        """The training jobs created between two times, newest first in each week."""
        reader, read = Reader(region), 0
        sagemaker = self.clients("sagemaker", region)
        try:
            for record in self._found(sagemaker, since, until):
                read += 1
                job = reader.job(record)
                if job is not None:
                    yield job
        except (ClientError, *UNREACHED) as error:
            self.unread |= set() if read else {region}
            left = f"only its newest {plural(read, 'job')} count" if read else "it is left out"
            self.notes.append(f"jobs of {region} cannot be read ({_why(error)}): {left}")

    def _call(self, client: Any, operation: str, per_second: float, **request: Any) -> Any:
        self.pace.wait(per_second)
        self.requests += 1
        return getattr(client, operation)(**request)

    def _found(
        self, sagemaker: Any, since: datetime, until: datetime
    ) -> Iterator[Mapping[str, Any]]:
        """By Search; where that is refused one by one."""
        end = until
        while end > since:
            begin = max(end - SLICE, since)
            try:
                yield from self._search(sagemaker, begin, end)
            except ClientError as error:
                if error_code(error) not in DENIED:
                    raise
                self.notes.append(
                    f"sagemaker:Search is refused: the newest {self.most:,} jobs are described one "
                    f"by one, {DESCRIPTIONS:g} a second, without tags, so no owner is known"
                )
                yield from self._described(sagemaker, since, end)
                return
            end = begin

    def _search(
        self, sagemaker: Any, begin: datetime, end: datetime
    ) -> Iterator[Mapping[str, Any]]:
        request = search_request(begin, end)
        while True:
            answer = self._call(sagemaker, "search", SEARCHES, **request)
            for result in answer.get("Results", ()):
                yield result.get("TrainingJob", {})
            request["NextToken"] = answer.get("NextToken")
            if not request["NextToken"]:
                return

    def _described(
        self, sagemaker: Any, since: datetime, until: datetime
    ) -> Iterator[Mapping[str, Any]]:
        for name in islice(self._listed(sagemaker, since, until), self.most):
            yield self._call(sagemaker, "describe_training_job", DESCRIPTIONS, TrainingJobName=name)

    def _listed(self, sagemaker: Any, since: datetime, until: datetime) -> Iterator[str]:
        request: dict[str, Any] = {
            "CreationTimeAfter": since, "CreationTimeBefore": until, "SortBy": "CreationTime",
            "SortOrder": "Descending", "MaxResults": PAGE,
        }  # fmt: skip
        while True:
            answer = self._call(sagemaker, "list_training_jobs", DESCRIPTIONS, **request)
            yield from (one["TrainingJobName"] for one in answer["TrainingJobSummaries"])
            if not answer.get("NextToken"):
                return
            request["NextToken"] = answer["NextToken"]

    def measured(
        self, groups: Sequence[Group], facts: Facts, region: str, now: datetime
    ) -> dict[int, Measured]:
        """How busy the GPUs of each group's newest runs were, by the group's place."""
        asked = defaultdict[int, list[tuple[int, Job]]](list)
        for place, group in enumerate(groups):
            instance = facts.instance(group.newest.instances[0][0])
            if instance is not None and instance.gpus:
                for job in [one for one in group.jobs if one.completed][-MEASURED_RUNS:]:
                    if job.started and job.ended:
                        asked[_period(job, now)].append((place, job))
        shares = defaultdict[int, list[tuple[float, float]]](list)
        try:
            for period, runs in asked.items():
                for at in range(0, len(runs), METRICS_AT_ONCE // 2):
                    some = runs[at : at + METRICS_AT_ONCE // 2]
                    for place, busy in self._metrics(region, some, period):
                        shares[place].append(busy)
        except (ClientError, *UNREACHED) as error:
            self.notes.append(
                f"cloudwatch:GetMetricData failed in {region} ({_why(error)}): how busy GPUs are "
                "stays unknown"
            )
        return {
            place: _measured(runs, facts, groups[place]) for place, runs in shares.items() if runs
        }

    def _metrics(
        self, region: str, runs: Sequence[tuple[int, Job]], period: int
    ) -> Iterator[tuple[int, tuple[float, float]]]:
        """Of each run the mean utilization and the largest use of memory, all GPUs added up."""
        queries = [
            metric_query(f"{kind}{number}", metric, job.name, period, statistic)
            for number, (_, job) in enumerate(runs)
            for kind, metric, statistic in (
                ("u", "GPUUtilization", "Average"), ("m", "GPUMemoryUtilization", "Maximum"),
            )
        ]  # fmt: skip
        request: dict[str, Any] = {
            "MetricDataQueries": queries,
            "StartTime": datetime.fromtimestamp(min(job.started or 0 for _, job in runs), UTC),
            "EndTime": datetime.fromtimestamp(max(job.ended or 0 for _, job in runs), UTC),
        }
        points = defaultdict[str, list[float]](list)
        cloudwatch = self.clients("cloudwatch", region)
        while True:
            answer = self._call(cloudwatch, "get_metric_data", SEARCHES, **request)
            for row in answer.get("MetricDataResults", ()):
                job = runs[int(row["Id"][1:])][1]
                pairs = zip(row["Timestamps"], row["Values"], strict=False)
                points[row["Id"]] += [value for at, value in pairs if _within(job, at)]
            request["NextToken"] = answer.get("NextToken")
            if not request["NextToken"]:
                break
        for number, (place, _) in enumerate(runs):
            busy, memory = points[f"u{number}"], points[f"m{number}"]
            if busy:
                yield place, (mean(busy), max(memory, default=0.0))

    def billed(self, regions: Sequence[str], since: datetime, until: datetime) -> dict[str, float]:
        """USD that Cost Explorer has of training, by instance type; one call is one cent."""
        end = until + timedelta(days=1)  # the day of the end is left out
        request: dict[str, Any] = {
            "TimePeriod": {"Start": f"{since:%Y-%m-%d}", "End": f"{end:%Y-%m-%d}"},
            "Granularity": "MONTHLY", "Metrics": ["AmortizedCost"],
            "GroupBy": [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
            "Filter": {"And": [
                {"Dimensions": {"Key": "SERVICE", "Values": [SERVICE]}},
                {"Dimensions": {"Key": "REGION", "Values": list(regions)}},
            ]},
        }  # fmt: skip
        usd = defaultdict[str, float](float)
        try:
            costs = self.clients("ce", COSTS_REGION)
            while True:
                answer = self._call(costs, "get_cost_and_usage", DESCRIPTIONS, **request)
                for result in answer.get("ResultsByTime", ()):
                    for group in result.get("Groups", ()):
                        if kind := _TRAINING.fullmatch(group["Keys"][0]):
                            usd[kind["type"]] += float(group["Metrics"]["AmortizedCost"]["Amount"])
                if not answer.get("NextPageToken"):
                    return usd
                request["NextPageToken"] = answer["NextPageToken"]
        except (ClientError, *UNREACHED) as error:
            self.notes.append(
                f"ce:GetCostAndUsage failed ({_why(error)}): costs are at list prices, without "
                "discounts and savings plans"
            )
            return {}


def search_request(begin: datetime, end: datetime) -> dict[str, Any]:
    """A request of Search for the first page of the jobs created between two times."""
    filters = [
        {"Name": "CreationTime", "Operator": "GreaterThanOrEqualTo", "Value": _time(begin)},
        {"Name": "CreationTime", "Operator": "LessThan", "Value": _time(end)},
    ]
    return {
        "Resource": "TrainingJob", "MaxResults": PAGE, "SortBy": "CreationTime",
        "SortOrder": "Descending", "SearchExpression": {"Filters": filters},
    }  # fmt: skip


def metric_query(name: str, metric: str, job: str, period: int, statistic: str) -> dict[str, Any]:
    """A query of GetMetricData for a metric of a job's first instance."""
    host = [{"Name": "Host", "Value": f"{job}/algo-1"}]
    of_job = {"Namespace": NAMESPACE, "MetricName": metric, "Dimensions": host}
    return {"Id": name, "MetricStat": {"Metric": of_job, "Period": period, "Stat": statistic}}


def _why(error: Exception) -> str:
    return error_code(error) or " ".join(str(error).split())[:120]


def _time(at: datetime) -> str:
    """In whole seconds, rounded up: jobs of the second that has not ended count."""
    return f"{at + timedelta(microseconds=999_999):%Y-%m-%dT%H:%M:%SZ}"


def _period(job: Job, now: datetime) -> int:
    """Seconds of a point: the finest that CloudWatch still keeps of the run, of a few hundred."""
    days = (now.timestamp() - (job.started or 0.0)) / 86400
    if days > FIVE_KEPT:
        return 3600
    short = (job.seconds or 0.0) < 3 * 3600
    return 60 if days < MINUTES_KEPT and short else 300


def _within(job: Job, at: datetime) -> bool:
    """Whether a time is in the run, but for its begin and its end."""
    begin, end = job.started or 0.0, job.ended or 0.0
    spare = (end - begin) * MARGIN
    return begin + spare <= at.timestamp() <= end - spare


def _measured(runs: Sequence[tuple[float, float]], facts: Facts, group: Group) -> Measured:
    """Shares of one GPU: SageMaker adds the percentages of an instance's GPUs."""
    instance = facts.instance(group.newest.instances[0][0])
    gpus = instance.gpus if instance else 1
    share = mean([busy for busy, _ in runs]) / gpus / 100
    memory = max(largest for _, largest in runs) / gpus / 100
    size = instance.gpu_memory_gib if instance else None
    return Measured(
        gpu_utilization=round(min(share, 1.0), 3),
        peak_memory_gib=round(memory * size, 1) if size and memory else None,
        runs=len(runs),
    )


def unpriced_note(kinds: Sequence[str]) -> str:
    """That the price of types is not known, and what that costs."""
    return (
        f"no price of {', '.join(kinds)}: {plural(len(kinds), 'type')} without dollars; "
        "`compilegate facts refresh` reads it, or cdk.json may name it"
    )
