"""Services are put together from a function's environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.adapters import stores, wiring
from compilegate.domain.deployment_settings import JobRules
from compilegate.domain.workload.model import FactOverrides
from compilegate.domain.workload.quality import Quality
from compilegate.ports import Settings

ROLES = "arn:aws:iam::111122223333:role/compilegate/prod-"
LEAST = {"STAGE": "prod", "AWS_REGION": "eu-west-1", "JOB_ROLES": ROLES}


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Each client that is made, with whether it is a hasty one."""
    made: list[Any] = []

    def client(service: str, *, hasty: bool = False) -> Any:
        made.append((service, hasty))
        return SimpleNamespace(get_item=lambda **request: made.append(request) or {})

    monkeypatch.setattr(stores, "client", client)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    caches = (wiring.services, wiring.topic)
    for cached in caches:
        cached.cache_clear()
    yield made
    for cached in caches:
        cached.cache_clear()


def test_settings_are_those_of_the_deployment() -> None:
    document = {"region": "us-west-2", "facts": {"prices": {"ml.g5.xlarge": 2.5}}, "vpc": {
        "subnet_ids": ["subnet-1"], "security_group_ids": ["sg-1", "sg-2"],
    }, "boundary": "arn:boundary", "tags": {"cost-centre": "1"},
        "jobs": {"network_isolation": True}}  # fmt: skip
    more = {"JOB_POLICY_ARN": "arn:policy", "DATA_KEY_ARN": "arn:key"}

    assert Settings("prod", "eu-west-1", ROLES) == wiring.settings_from(LEAST)
    assert Settings(
        "prod", "us-west-2", ROLES, job_policy="arn:policy", kms_key_arn="arn:key",
        subnet_ids=("subnet-1",), security_group_ids=("sg-1", "sg-2"),
        facts=FactOverrides(prices={"ml.g5.xlarge": 2.5}), job_boundary="arn:boundary",
        tags={"cost-centre": "1"}, rules=JobRules(network_isolation=True),
    ) == wiring.settings_from({**LEAST, **more, "SETTINGS": json.dumps(document)})  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "simulated"),
    [
        ("", False), ("https://sagemaker.eu-west-1.amazonaws.com", False),
        ("http://127.0.0.1:4566", True), ("http://localhost:1", True), ("http://[::1]:1", True),
    ],
)  # fmt: skip
def test_an_endpoint_on_this_machine_is_a_simulation(
    endpoint: str, simulated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    note = wiring.settings_from(LEAST).simulated

    assert simulated == (note is not None)
    assert note is None or f"({os.cpu_count()} cores)" in note


def test_services_are_made_once_of_what_the_environment_names(
    clients: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"DATA_BUCKET": "data", "LEDGER_TABLE": "ledger", "TOPIC_ARN": "arn:topic"}
    for name, value in {**LEAST, **named}.items():
        monkeypatch.setenv(name, value)

    one = wiring.services()

    assert one is wiring.services()
    assert ("data", "prod", one.ledger.raw) == (one.store.bucket, one.settings.stage, one.locks)
    assert one.tokens is one.ends
    assert one.locks.holder("w") is None
    assert "ledger" == clients.pop()["TableName"]
    assert ["service-quotas"] == [service for service, hasty in clients if hasty]
    assert {"s3", "dynamodb", "stepfunctions", "ssm", "sagemaker", "iam", "service-quotas"} == {
        service for service, _ in clients
    }
    assert wiring.topic() is wiring.topic()
    assert ("sns", False) == clients[-1]
    assert not hasattr(wiring, "S3Store")  # loaded with the services, half of a cold start


def test_outputs_are_read_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    one = wiring.build(bucket="data", table="t", settings=wiring.settings_from(LEAST))
    monkeypatch.setattr(one.store, "fetch", lambda uri: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        one.outputs.full_run("s3://data/k", "j", Quality("m", "minimize", 0.1))


@pytest.mark.parametrize(("days", "kept"), [(None, []), ("", []), ("30", [30])])
def test_training_logs_are_kept_for_the_days_that_the_deployment_names(
    days: str | None, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    logs = SimpleNamespace(
        describe_log_groups=lambda **asked: {
            "logGroups": [{"logGroupName": asked["logGroupNamePrefix"]}]
        },
        put_retention_policy=lambda **request: limits.append(request["retentionInDays"]),
    )
    monkeypatch.setattr(stores, "client", lambda service: {"logs": logs}[service])
    if days is not None:
        monkeypatch.setenv("TRAINING_LOG_DAYS", days)

    assert bool(kept) == wiring.training_logs().limit_retention()
    assert kept == limits
