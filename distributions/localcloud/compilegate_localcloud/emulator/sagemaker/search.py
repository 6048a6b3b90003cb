"""Search over training jobs: filters, order and pages, as the API reference describes them.

The service does not say how its text filters treat capitals; here they must match.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from compilegate_localcloud.emulator.clients import service_model
from compilegate_localcloud.emulator.sagemaker.failures import ApiError
from compilegate_localcloud.emulator.sagemaker.job import TrainingJob, tag_list

Document = dict[str, Any]
PAGE = 10
_TIMES = frozenset({"CreationTime", "LastModifiedTime", "TrainingStartTime", "TrainingEndTime"})
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "NotEquals": operator.ne,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqualTo": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqualTo": operator.le,
    "Contains": lambda value, part: str(part) in str(value),
}


def search(jobs: Iterable[TrainingJob], request: Document) -> Document:
    """A page of the jobs that the expression leaves, the last modified first by default.

    Raises ApiError(ValidationException) for what the local cloud does not search, or an unknown
    property.
    """
    _refuse_unsupported(request)
    expression = request.get("SearchExpression", {})
    matches = [record for record in map(_record, jobs) if _matches(record, expression)]
    name = request.get("SortBy", "LastModifiedTime")
    sortable = [record for record in matches if _property(record, name) is not None]
    sortable.sort(
        key=lambda record: _property(record, name),
        reverse=request.get("SortOrder", "Descending") == "Descending",
    )
    matches = sortable + [record for record in matches if _property(record, name) is None]
    first = _offset(request.get("NextToken", "0"))
    last = first + int(request.get("MaxResults", PAGE))
    more = {"NextToken": str(last)} if last < len(matches) else {}
    results = [{"TrainingJob": record} for record in matches[first:last]]
    hits = {"Value": len(matches), "Relation": "EqualTo"}
    return {"Results": results, "TotalHits": hits, **more}


def _refuse_unsupported(request: Document) -> None:
    if request["Resource"] != "TrainingJob":
        raise _refusal(f"The local cloud searches TrainingJob, not {request['Resource']}.")
    if request.get("CrossAccountFilterOption") == "CrossAccount":
        raise _refusal("The local cloud has no jobs that other accounts share.")


def _record(job: TrainingJob) -> Document:
    shown = {**job.describe(), "Tags": tag_list(job)}
    members = service_model("sagemaker").shape_for("TrainingJob").members
    return {name: value for name, value in shown.items() if name in members}


def _offset(token: str) -> int:
    if not token.isdecimal():
        raise _refusal("Invalid NextToken.")
    return int(token)


def _matches(record: Document, expression: Document) -> bool:
    if "NestedFilters" in expression:
        raise _refusal("The local cloud has no NestedFilters.")
    answers = [_passes(record, one) for one in expression.get("Filters", [])]
    answers += [_matches(record, one) for one in expression.get("SubExpressions", [])]
    if expression.get("Operator", "And") == "Or" and answers:
        return any(answers)
    return all(answers)


def _passes(record: Document, condition: Document) -> bool:
    value = _property(record, condition["Name"])
    kind: str = condition.get("Operator", "Equals")
    if kind in ("Exists", "NotExists"):
        return (value is not None) == (kind == "Exists")
    if "Value" not in condition:
        raise _refusal(f"The filter of {condition['Name']} has no Value.")
    if kind == "In":
        listed = [
            _like(value, part.strip(), condition["Name"]) for part in condition["Value"].split(",")
        ]
        return value in listed
    if value is None:
        return False
    return _COMPARED[kind](value, _like(value, condition["Value"], condition["Name"]))


def _like(value: Any, text: str, name: str) -> Any:
    """The filter's text as the property has its values: a number, a time, or text."""
    try:
        if name in _TIMES:
            at = datetime.fromisoformat(text)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, bool):
            return text.lower() == "true"
        return float(text) if isinstance(value, int | float) else text
    except ValueError as error:
        raise _refusal(f"{text!r} is no value for {name}.") from error


def _property(record: Document, name: str) -> Any:
    """A property by its path: ``ResourceConfig.InstanceType``, ``Tags.owner``, ``Metrics.loss``."""
    first, _, rest = name.partition(".")
    if first == "Tags" and rest:
        return {tag["Key"]: tag["Value"] for tag in record["Tags"]}.get(rest)
    if first == "Metrics" and rest:
        metrics = record.get("FinalMetricDataList", [])
        return {one["MetricName"]: one["Value"] for one in metrics}.get(rest)
    if first not in service_model("sagemaker").shape_for("TrainingJob").members:
        raise _refusal(f"Unknown property name: {name}")
    value = record.get(first)
    # A hyperparameter's name may have dots.
    parts = [rest] if first == "HyperParameters" else rest.split(".")
    for part in parts if rest else ():
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _refusal(message: str) -> ApiError:
    return ApiError("ValidationException", message)
