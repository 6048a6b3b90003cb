"""What AWS publishes in packages says what is assumed of it: models, schemas, texts, code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session

from compilegate_discover import account, job

MODELS = botocore.session.get_session()


@cache
def model(service: str) -> Any:
    return MODELS.get_service_model(service)


def text_of(service: str, operation: str = "", shape: str = "", member: str = "") -> str:
    """A service's documentation of an operation, a shape or a member, without markup."""
    documented = model(service).operation_model(operation) if operation else None
    if shape:
        documented = model(service).shape_for(shape)
    if member:
        documented = documented.members[member]
    return " ".join(re.sub(r"<[^>]+>", "", documented.documentation).split())


def test_cloudwatch_keeps_points_as_long_as_discover_asks_for_them() -> None:
    text = text_of("cloudwatch", "GetMetricData")
    kept = dict(re.findall(r"period of (\d+) seconds \([^)]*\) are available for (\d+) days", text))

    assert {"60": "15", "300": "63", "3600": "455"} == kept
    assert int(kept["60"]) - 1 == account.MINUTES_KEPT
    assert int(kept["300"]) - 1 == account.FIVE_KEPT
    assert f"as many as {account.METRICS_AT_ONCE} different metrics in a single request" in text


def test_search_has_every_field_of_a_job_that_discover_reads_as_describe_has_it() -> None:
    source = Path(job.__file__).read_text()
    read = set(re.findall(r'record(?:\.get\(|, )"(\w+)"', source))
    found = model("sagemaker").shape_for("TrainingJob").members
    described = model("sagemaker").shape_for("DescribeTrainingJobResponse").members

    assert len(read) > 15
    assert set() == read - set(found)
    assert {"Tags"} == read - set(described)
    assert [found[name].name for name in sorted(read - {"Tags"})] == [
        described[name].name for name in sorted(read - {"Tags"})
    ]
