"""Handlers as the runtime calls them: event in, answer out, errors with words for people."""

import boto3
import pytest
from moto import mock_aws

from compilegate.adapters import stores, wiring
from compilegate.domain.naming import REFUSED
from compilegate.usecases.operations import sweep
from lambdas import handlers

SPEC = "workloads/bert-docs/specs/1.json"
TRIAL = {"workload": "bert-docs", "trial": "t0000001", "spec_key": SPEC}
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:evaluate:bert-docs-t0000001"
ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing", "DATA_BUCKET": "data", "LEDGER_TABLE": "ledger",
    "STAGE": "dev", "SETTINGS": '{"region": "us-east-1", "facts": {}, "vpc": null}',
    "JOB_ROLES": "arn:aws:iam::123456789012:role/compilegate/prod-us-east-1-",
}  # fmt: skip


@pytest.fixture
def deployed(monkeypatch):
    """The tables and buckets that the environment of a function names."""
    for key, value in ENVIRONMENT.items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        wiring.services.cache_clear()
        stores.client.cache_clear()
        boto3.client("s3").create_bucket(Bucket="data")
        boto3.client("dynamodb").create_table(
            TableName="ledger",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
            ],
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
        )
        yield
    wiring.services.cache_clear()
    stores.client.cache_clear()


@pytest.fixture
def handle():
    """Calls a function's handler by its step's name."""

    def call(name, **event):
        return getattr(handlers, name)({**TRIAL, **event}, None)

    return call


def test_a_lock_is_taken_and_given_back(deployed, handle):
    assert {} == handle("acquire_lock", execution=EXECUTION)
    assert {} == handle("release_lock", execution=EXECUTION)
    assert {} == handle("acquire_lock", execution=f"{EXECUTION}-2", trial="t0000002")


def test_a_refusal_is_an_answer_that_names_the_holder_and_no_error_of_the_function(
    deployed, handle
):
    """AWS/Lambda Errors raises an alarm."""
    handle("acquire_lock", execution=EXECUTION)

    refused = handle("acquire_lock", execution=f"{EXECUTION}-2")[REFUSED]
    assert "WorkloadLockedError" == refused["error"]
    assert EXECUTION in refused["cause"]


def test_cleaning_up_answers_with_a_reason_twice_the_same(deployed, handle):
    call = {"execution": EXECUTION, "error": "States.Timeout", "cause": ""}

    first, second = handle("abort_trial", **call), handle("abort_trial", **call)

    assert first == second
    assert "States.Timeout" == first["error"]
    assert first["reason"]


def test_an_unexpected_error_is_logged_with_its_traceback(deployed, handle, caplog):
    with pytest.raises(KeyError):
        handle("acquire_lock")  # no execution

    assert caplog.records[-1].exc_info is not None


def test_a_name_that_is_no_step_has_no_handler():
    with pytest.raises(AttributeError, match="no step 'judge_army'"):
        _ = handlers.judge_army


def test_the_sweep_stops_jobs_even_where_a_retention_cannot_be_set(deployed, monkeypatch):
    class Refusing:
        def limit_retention(self):
            raise PermissionError("logs:PutRetentionPolicy")

    swept = []
    monkeypatch.setattr(sweep, "sweep", lambda *_, **__: swept.append("jobs"))
    with pytest.raises(PermissionError):  # the alarm tells of it
        sweep.daily({}, services=wiring.services(), topic=None, training_logs=Refusing())

    assert ["jobs"] == swept
