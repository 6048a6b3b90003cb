"""A job's output counts only if it was written once, and the reader says which version it read."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from compilegate.adapters.stores import S3Store
from compilegate.domain.errors import NotFoundError, OverwrittenEvidenceError

KEY = "experiments/bert/m0abc123/jobs/cg-bert-r0/output/output.tar.gz"
URI = f"s3://data/{KEY}"


@pytest.fixture
def s3(aws: None) -> Any:
    client = boto3.client("s3")
    for bucket in ("data", "team"):
        client.create_bucket(Bucket=bucket)
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return client


def test_an_output_that_was_written_once_is_read_with_its_identity(s3: Any) -> None:
    written = s3.put_object(Bucket="data", Key=KEY, Body=b"left")
    s3.put_object(Bucket="data", Key=f"{KEY}.other", Body=b"another object")
    fetched = S3Store(s3, "data").fetch(URI)

    assert b"left" == fetched.stream.read()
    assert {"output_etag": written["ETag"], "output_version": written["VersionId"]} == dict(
        fetched.identity
    )


@pytest.mark.parametrize("how", ["written over", "removed and written", "removed"])
def test_an_output_that_was_written_again_does_not_count(s3: Any, how: str) -> None:
    s3.put_object(Bucket="data", Key=KEY, Body=b"left")
    if "removed" in how:
        s3.delete_object(Bucket="data", Key=KEY)
    if "written" in how:
        s3.put_object(Bucket="data", Key=KEY, Body=b"better")

    with pytest.raises(OverwrittenEvidenceError, match=KEY):
        S3Store(s3, "data").fetch(URI)


def test_an_output_that_was_never_written_is_missing(s3: Any) -> None:
    with pytest.raises(NotFoundError):
        S3Store(s3, "data").fetch(URI)
