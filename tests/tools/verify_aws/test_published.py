"""What AWS publishes in packages says what is assumed of it: models, schemas, texts, code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse

from compilegate.adapters import stores
from compilegate_discover import account, job
from tools.verify_aws.assumptions import load_assumptions

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


def test_the_service_models_have_the_fields_and_words() -> None:
    described = model("sagemaker").shape_for("DescribeTrainingJobResponse").members

    assert {"BillableTimeInSeconds", "TrainingTimeInSeconds"} <= set(described)
    assert {"Stopped"} <= set(described["TrainingJobStatus"].enum)
    assert {"Stopped", "MaxRuntimeExceeded"} <= set(described["SecondaryStatus"].enum)


# Rows whose proof is a sentence, and the sentences by place.
TEXTS: dict[str, dict[tuple[str, str, str, str], str]] = {
    "spot-interruption": {
        ("sagemaker", "", "CreateTrainingJobRequest", "EnableManagedSpotTraining"):
            "see when managed spot training jobs are running, interrupted, resumed, or completed",
        ("sagemaker", "", "DescribeTrainingJobResponse", "SecondaryStatus"):
            "Interrupted - The job stopped because the managed spot training instances were "
            "interrupted",
    },
    "metric-regexes": {
        ("sagemaker", "", "AlgorithmSpecification", "MetricDefinitions"):
            "the metric name and regular expressions used to parse algorithm logs",
        ("sagemaker", "", "DescribeTrainingJobResponse", "FinalMetricDataList"):
            "the names, values, and dates and times that the training algorithm emitted",
    },
    "task-token": {
        ("stepfunctions", "SendTaskSuccess", "", ""):
            "report that the task identified by the taskToken completed successfully",
        ("stepfunctions", "", "TaskSucceededEventDetails", "output"):
            "This response becomes the output of the related task",
    },
    "execution-keeps-its-code": {
        ("stepfunctions", "UpdateStateMachine", "", ""):
            "Running executions will continue to use the previous definition and roleArn",
        ("lambda", "PublishVersion", "", ""):
            "a snapshot of your function code and configuration that doesn't change",
    },
    "machine-deletion": {
        ("stepfunctions", "DeleteStateMachine", "", ""):
            "A state machine is deleted only when all its executions are completed. On the next "
            "state transition, the state machine's executions are terminated.",
    },
    "dead-letters": {
        ("events", "", "Target", "DeadLetterConfig"):
            "defines the target queue to send dead-letter queue events to",
    },
    "jobs-listed-by-page": {
        ("sagemaker", "ListTrainingJobs", "", ""):
            "are first retrieved ignoring the StatusEquals parameter and then they are filtered",
    },
}  # fmt: skip


@pytest.mark.parametrize("row", TEXTS)
def test_the_documentation_in_the_service_models_says_it(row: str) -> None:
    for place, sentence in TEXTS[row].items():
        assert sentence in text_of(*place)


def test_each_row_that_names_the_documentation_has_its_sentence() -> None:
    named = {one.id for one in load_assumptions() if one.test.endswith("_service_models_says_it")}

    assert named == set(TEXTS)


class Body(BytesIO):
    """As botocore reads an answer."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def test_a_throttled_search_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    answers = [
        (400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'),
        (400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'),
        (200, b'{"Results": []}'),
    ]

    def answer(request: AWSRequest, **_: Any) -> AWSResponse:
        status, body = answers.pop(0)
        return AWSResponse(request.url, status, {}, Body(body))

    sagemaker = stores.client("sagemaker", "eu-west-3")
    sagemaker.meta.events.register("before-send.sagemaker.Search", answer)
    found = sagemaker.search(Resource="TrainingJob")

    assert ([], []) == (found["Results"], answers)
