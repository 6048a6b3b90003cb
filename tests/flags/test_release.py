"""May a model be released? Only where nothing holds it back, and only where that can be read."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.flags import may_release
from compilegate.flags.backoff import Backoff

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/cg-bert-docs-0mabc123-p0-r0"
MODEL = "arn:aws:sagemaker:us-east-1:111122223333:model/bert-docs"
HURRY = Backoff(seconds=0.0)


class Tags:
    """A SageMaker client that knows one job's tags, a page at a time."""

    def __init__(self, *pages: dict[str, str], error: Exception | None = None) -> None:
        self.pages, self.error = pages, error

    def describe_training_job(self, **_: Any) -> dict[str, Any]:
        return {"TrainingJobArn": ARN}

    def list_tags(self, *, ResourceArn: str, NextToken: str = "0") -> dict[str, Any]:  # noqa: N803
        assert ResourceArn in (ARN, MODEL)
        if self.error:
            raise self.error
        page = int(NextToken)
        tags = [{"Key": key, "Value": value} for key, value in self.pages[page].items()]
        more = {"NextToken": str(page + 1)} if page + 1 < len(self.pages) else {}
        return {"Tags": tags, **more}


HELD = {"compilegate:release": "hold"}


@pytest.mark.parametrize(
    ("job", "pages", "may"),
    [
        (ARN, [{}], True), (ARN, [{"team": "search"}], True),
        (ARN, [{"compilegate:release": "released"}], True), (ARN, [HELD], False),
        (ARN, [{"compilegate:release": "rejected"}], False),
        (ARN, [{"compilegate:release": "Released"}], False),
        (ARN, [{"compilegate:release": ""}], False),
        (ARN, [{"team": "search"}, HELD], False),  # on a later page
        (ARN.rpartition("/")[2], [HELD], False),  # by the job's name
        (ARN.rpartition("/")[2], [{"team": "search"}], True),
        (MODEL, [{}], False),  # not for having no tags: it is no training job
    ],
)  # fmt: skip
def test_a_model_may_go_unless_a_tag_says_anything_but_released(
    job: str, pages: list[dict[str, str]], may: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "compilegate.flags")

    assert may is may_release(job, client=Tags(*pages), backoff=HURRY)
    assert may is ("is not released" not in caplog.text)
    assert ("compilegate:release is " in caplog.text) is (not may and job != MODEL)


@pytest.mark.parametrize(
    "job", [ARN, "arn:aws:sagemaker:us-east-1:1:model/x", "arn:aws:s3:::bucket/model.tar.gz"]
)
def test_what_cannot_be_read_is_not_released(job: str, caplog: pytest.LogCaptureFixture) -> None:
    client = Tags({}, error=ConnectionError("no route"))

    assert not may_release(job, client=client, backoff=HURRY)
    assert "is not released" in caplog.text
    assert ["compilegate.flags"] == [record.name for record in caplog.records]
