"""Cost Explorer's GetCostAndUsage: what the account's training jobs cost by the prices on file.

Of a type without a price on file no line is on the bill. A job is billed for the seconds that
SageMaker describes, each on the day on which it ran, spot as on demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from compilegate_localcloud.emulator.sagemaker.failures import ApiError, Response, wire_response
from compilegate_localcloud.emulator.sagemaker.job import TrainingJob
from compilegate_localcloud.emulator.sagemaker.validation import check_request
from compilegate_localcloud.emulator.settings import read_facts

Document = dict[str, Any]
_SERVICE, _OPERATION = "Amazon SageMaker", "RunInstance"
_COSTS = frozenset(
    {"UnblendedCost", "BlendedCost", "AmortizedCost", "NetUnblendedCost", "NetAmortizedCost"}
)
_USAGE = "UsageQuantity"


class CostExplorer:
    """Answers GetCostAndUsage from ``jobs``, the training jobs of an account in all regions."""

    def __init__(self, jobs: Callable[[str], Iterable[TrainingJob]]) -> None:
        self._jobs = jobs

    def respond(self, operation: str, body: bytes, account: str) -> Response:
        """Status, headers and body of one call on the wire."""

        def answer(request: Document) -> Document:
            if operation != "GetCostAndUsage":
                raise ApiError("UnknownOperationException", f"The local cloud has no {operation}.")
            check_request(operation, request, "ce")
            return _cost_and_usage(request, self._jobs(account))

        return wire_response(answer, body)


class _Line(NamedTuple):
    """Part of a job on the bill, in instance hours and dollars."""

    day: date
    dimensions: dict[str, str]
    hours: float
    usd: float


def _cost_and_usage(request: Document, jobs: Iterable[TrainingJob]) -> Document:
    metrics, keys = request["Metrics"], _group_keys(request)
    unknown = sorted({*metrics} - _COSTS - {_USAGE})
    if unknown:
        raise _refusal(f"The local cloud has no metric {', '.join(unknown)}.")
    periods = list(_periods(request))
    lines = [
        line
        for job in jobs
        for line in _lines(job)
        if _matches(line.dimensions, request.get("Filter", {}))
    ]
    results = []
    for begin, end in periods:
        within = [line for line in lines if begin <= line.day < end]
        result = {
            "TimePeriod": {"Start": begin.isoformat(), "End": end.isoformat()},
            "Total": {} if keys else _sums(within, metrics),
            "Groups": list(_groups(within, keys, metrics)) if keys else [],
            "Estimated": end > datetime.now(UTC).date(),
        }
        results.append(result)
    return {"ResultsByTime": results, "GroupDefinitions": request.get("GroupBy", [])}


def _group_keys(request: Document) -> list[str]:
    groups = request.get("GroupBy", [])
    if len(groups) > 2 or any(group.get("Type") != "DIMENSION" for group in groups):
        raise _refusal("The local cloud groups by one or two dimensions.")
    return [_dimension(group["Key"]) for group in groups]


def _periods(request: Document) -> Iterator[tuple[date, date]]:
    """The days or months of the time period, its end left out."""
    if request["Granularity"] == "HOURLY":
        raise _refusal("The local cloud has the granularities DAILY and MONTHLY.")
    try:
        begin, last = (date.fromisoformat(request["TimePeriod"][name]) for name in ("Start", "End"))
    except ValueError as error:
        raise _refusal(f"Start and End must be dates such as 2026-11-01: {error}") from error
    if begin >= last:
        raise _refusal("Start date (and hour) should be before end date (and hour)")
    while begin < last:
        end = begin + timedelta(days=1)
        if request["Granularity"] == "MONTHLY":
            end = (begin.replace(day=1) + timedelta(days=32)).replace(day=1)
        yield begin, min(end, last)
        begin = end


def _lines(job: TrainingJob) -> Iterator[_Line]:
    shown = job.describe()
    seconds = shown.get("BillableTimeInSeconds", 0)
    if not seconds:
        return
    resources = shown["ResourceConfig"]
    days = list(_days(shown["TrainingStartTime"], shown["TrainingEndTime"], seconds))
    for group in resources.get("InstanceGroups") or [resources]:
        price = _prices().get(group["InstanceType"])
        if price is None:
            continue
        dimensions = {
            "SERVICE": _SERVICE,
            "OPERATION": _OPERATION,
            "RECORD_TYPE": "Usage",
            "LINKED_ACCOUNT": job.account,
            "REGION": job.region,
            "INSTANCE_TYPE": group["InstanceType"],
            "USAGE_TYPE": f"{_code(job.region)}-Train:{group['InstanceType']}",
        }
        for day, part in days:
            hours = part * group["InstanceCount"] / 3600
            yield _Line(day, dimensions, hours, hours * price)


def _days(begin: float, end: float, seconds: float) -> Iterator[tuple[date, float]]:
    """The billed seconds by the day in UTC, in proportion to the time between begin and end."""
    at, whole = begin, end - begin
    while at < end:
        day = datetime.fromtimestamp(at, UTC).date()
        following = datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC).timestamp()
        yield day, seconds * (min(end, following) - at) / whole
        at = following


@cache
def _prices() -> dict[str, float]:
    return {row["instance_type"]: row["usd_per_hour"] for row in read_facts("prices")["prices"]}


def _code(region: str) -> str:
    """How usage types name a region: USE1, APN1, and EU for the first in Europe."""
    if region == "eu-west-1":
        return "EU"
    country, direction, number = region.rsplit("-", 2)
    return f"{country}{direction[0]}{number}".upper()


def _matches(dimensions: dict[str, str], expression: Document) -> bool:
    for kind in ("Tags", "CostCategories", "ProductAttributes"):
        if kind in expression:
            raise _refusal(f"The local cloud does not filter by {kind}.")
    answers = [_matches(dimensions, one) for one in expression.get("And", [])]
    if "Or" in expression:
        answers.append(any(_matches(dimensions, one) for one in expression["Or"]))
    if "Not" in expression:
        answers.append(not _matches(dimensions, expression["Not"]))
    if "Dimensions" in expression:
        condition = expression["Dimensions"]
        if {*condition.get("MatchOptions", [])} - {"EQUALS", "CASE_SENSITIVE"}:
            raise _refusal("The local cloud has the match options EQUALS and CASE_SENSITIVE.")
        answers.append(dimensions[_dimension(condition["Key"])] in condition["Values"])
    return all(answers)


def _dimension(key: str) -> str:
    if key not in _DIMENSIONS:
        raise _refusal(f"The local cloud has no dimension {key}.")
    return key


_DIMENSIONS = frozenset(
    {
        "SERVICE", "OPERATION", "RECORD_TYPE", "LINKED_ACCOUNT", "REGION", "INSTANCE_TYPE",
        "USAGE_TYPE",
    }
)  # fmt: skip


def _groups(lines: list[_Line], keys: list[str], metrics: list[str]) -> Iterator[Document]:
    by_keys: dict[tuple[str, ...], list[_Line]] = defaultdict(list)
    for line in lines:
        by_keys[tuple(line.dimensions[key] for key in keys)].append(line)
    for names, group in sorted(by_keys.items()):
        yield {"Keys": list(names), "Metrics": _sums(group, metrics)}


def _sums(lines: list[_Line], metrics: list[str]) -> Document:
    hours, usd = sum(line.hours for line in lines), sum(line.usd for line in lines)
    return {
        metric: {"Amount": f"{hours:.10f}", "Unit": "Hrs"}
        if metric == _USAGE
        else {"Amount": f"{usd:.10f}", "Unit": "USD"}
        for metric in metrics
    }


def _refusal(message: str) -> ApiError:
    return ApiError("ValidationException", message)
