"""An account of moto's, and the ledger's table in it; a client that keeps what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

REGION = "us-east-1"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


@pytest.fixture
def dynamodb(aws: None) -> Any:
    client = boto3.client("dynamodb", region_name=REGION)
    client.create_table(
        TableName="ledger",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


class Asked:
    """A client that keeps what it is asked and gives one answer; ``refused`` are refusals."""

    def __init__(self, answer: dict[str, Any], **refused: str) -> None:
        self.answer, self.refused = answer, refused
        self.requests: list[tuple[Any, ...]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(*place: Any, **request: Any) -> Any:
            self.requests.append((operation, *place, request))
            if operation in self.refused:
                raise ClientError({"Error": {"Code": self.refused[operation]}}, operation)
            return self.answer

        return call

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(
            paginate=lambda **request: self.requests.append((operation, request)) or [self.answer]
        )
