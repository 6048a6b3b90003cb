"""Each check tells AWS as it is assumed from AWS as it might be."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilegate.adapters.state_machines import ExecutionState
from tools.verify_aws.assumptions import load_assumptions
from tools.verify_aws.checks import (
    CHECKS,
    STDERR_LINE,
    STDOUT_LINE,
    TASK_OUTPUT,
    TESTED_TOOLKITS,
)
from tools.verify_aws.observed import Job, JobKind, Observations, RefusedKind
from tools.verify_aws.record import Agreement, Record, compare


def execution_that(status, error="", cause="", output=None):
    return ExecutionState("arn", status, 0.0, 1.0, error, cause, output or {})


REQUIREMENTS = Path(__file__).resolve().parents[3] / "requirements"
CREATED = datetime(2026, 11, 22, 8, tzinfo=UTC)
REQUEST = {
    "TrainingJobName": "cg-verify-aws-t-q2a17",
    "AlgorithmSpecification": {
        "TrainingImage": "123456789012.dkr.ecr.us-east-1.amazonaws.com/pytorch:2.13.0-cu133",
        "MetricDefinitions": [{"Name": "loss"}, {"Name": "eval_loss"}],
    },
    "HyperParameters": {"text": '"a b"', "number": "0.5", "sagemaker_program": '"x.py"'},
    "Environment": {"COMPILEGATE_IMAGE": "image", "CACHE": "/opt/ml/checkpoints/cache"},
}
REPORT = {
    "arguments": {"--text": "a b", "--number": "0.5"},
    "environment": {
        **dict.fromkeys(("SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "SM_OUTPUT_DATA_DIR"), "x"),
        "SM_OUTPUT_DIR": "x", "SM_MODEL_DIR": "/opt/ml/model", "TRAINING_JOB_NAME": "x",
        **REQUEST["Environment"],
    },
    "packages": {"sagemaker-training": TESTED_TOOLKITS[0], "torch": "2.13.0+cu133"},
    "first_process": ["bash"],
    "restored": ["wait.txt"],
}  # fmt: skip


def described(status, secondary="", **more):
    return {
        "TrainingJobName": "j", "TrainingJobStatus": status, "CreationTime": CREATED,
        "SecondaryStatus": secondary or status, "BillableTimeInSeconds": 60,
        "TrainingTimeInSeconds": 60, **more,
    }  # fmt: skip


CAUSE = json.dumps({"TrainingJobName": "j"})
FAILED = execution_that("FAILED", "States.TaskFailed", CAUSE)
OUTPUT = ("output/model.tar.gz", "output/output.tar.gz")
COMPLETED = Job(
    REQUEST,
    described("Completed", FinalMetricDataList=[{"MetricName": "eval_loss"}]),
    execution_that("SUCCEEDED", output={"CreationTime": int(CREATED.timestamp() * 1000)}),
    files=OUTPUT,
    checkpoints=["inductor/a"],
    searched=[
        {**described("Completed", FinalMetricDataList=[{"MetricName": "eval_loss"}]),
         "Tags": [{"Key": "compilegate:workload", "Value": "verify-aws"}]}
    ],
    gpu_percent=[0.0, 98.5],
)  # fmt: skip
PROBE = Job(REQUEST, described("Failed"), FAILED, files=OUTPUT, report=REPORT)
AS_ASSUMED = Observations(
    jobs={
        JobKind.SPEED: replace(
            COMPLETED,
            request={"HyperParameters": {"arm_0": "a", "arm_1": "b"}},
            summaries=[
                "evidence/block-0/baseline/summary.json",
                "evidence/block-0/compile/summary.json",
            ],
        ),
        JobKind.QUALITY: COMPLETED,
        JobKind.FAILED: replace(
            PROBE, described=described("Failed", FailureReason=f"AlgorithmError: {STDERR_LINE}")
        ),
        JobKind.STOPPED: replace(PROBE, described=described("Stopped"), copied_while_training=True),
        JobKind.LIMITED: replace(PROBE, described=described("Stopped", "MaxRuntimeExceeded")),
    },
    refused={
        RefusedKind.INVALID: execution_that("FAILED", "SageMaker.AmazonSageMakerException"),
        RefusedKind.NAME_IN_USE: execution_that("FAILED", "SageMaker.ResourceInUseException"),
        RefusedKind.UNKNOWN_FIELD: execution_that("FAILED", "States.Runtime"),
        RefusedKind.OVER_QUOTA: execution_that(
            "FAILED", "SageMaker.ResourceLimitExceededException"
        ),
    },
    messages=(
        {"source": "aws.sagemaker", "detail": {"Tags": {"compilegate:workload": "verify-aws"}}},
        {"source": "aws.states", "detail": {"error": "e", "cause": "c"}},
        {"scheduled": "2026-11-22T08:00:00Z"},
    ),
    task_output=TASK_OUTPUT,
    definitions={"evaluate": "OK", "train": "OK"},
    quota=1,
)


def otherwise(kind, **changes):
    """What was seen, one job of it changed."""
    return replace(
        AS_ASSUMED, jobs={**AS_ASSUMED.jobs, kind: replace(AS_ASSUMED.jobs[kind], **changes)}
    )


def reported(**changes):
    return otherwise(JobKind.FAILED, report={**REPORT, **changes})


def refused(kind, execution):
    return replace(AS_ASSUMED, refused={**AS_ASSUMED.refused, kind: execution})


ANOTHER = execution_that("FAILED", "SageMaker.SageMakerException")
STARTED = execution_that("SUCCEEDED")
OTHER_WORLDS = {
    "toolkit-version": reported(packages={"sagemaker-training": "4.0.0", "torch": "2.13.0"}),
    "hyperparameters-arrive": reported(arguments={"--text": "a", "--number": "0.5"}),
    "speed-gate-runs": otherwise(
        JobKind.SPEED, summaries=["evidence/block-0/baseline/summary.json"]
    ),
    "environment-arrives": reported(environment={**REPORT["environment"], "CACHE": ""}),
    "script-mode-variables": reported(environment={}),
    "sigterm-not-delivered": otherwise(JobKind.STOPPED, log=["compilegate-probe-sigterm"]),
    "image-version": reported(packages={"sagemaker-training": "5.1.1", "torch": "2.1.0"}),
    "output-archive": otherwise(JobKind.QUALITY, files=["output/model.tar.gz"]),
    "output-of-failed-job": otherwise(JobKind.FAILED, files=[]),
    "metric-regexes": otherwise(JobKind.QUALITY, described=described("Completed")),
    "search-record": otherwise(
        JobKind.QUALITY, searched=[{**COMPLETED.searched[0], "BillableTimeInSeconds": 61}]
    ),
    "search-times": otherwise(
        JobKind.QUALITY,
        searched=[*COMPLETED.searched, {**COMPLETED.searched[0], "TrainingJobName": "k"}],
    ),
    "gpu-utilization": otherwise(JobKind.QUALITY, gpu_percent=[0.0, 101.0]),
    "billable-seconds": otherwise(
        JobKind.LIMITED, described={**described("Stopped"), "BillableTimeInSeconds": None}
    ),
    "training-seconds": otherwise(
        JobKind.LIMITED, described={**described("Stopped"), "TrainingTimeInSeconds": None}
    ),
    "failure-class": otherwise(
        JobKind.FAILED, described=described("Failed", FailureReason="ClientError: x")
    ),
    "failure-source": otherwise(
        JobKind.FAILED,
        described=described("Failed", FailureReason=f"AlgorithmError: {STDOUT_LINE}"),
    ),
    "stopped-status": otherwise(JobKind.STOPPED, described=described("Failed")),
    "time-limit": otherwise(JobKind.LIMITED, described=described("Completed")),
    "checkpoints-copied": otherwise(JobKind.STOPPED, copied_while_training=False),
    "checkpoints-copied-at-end": otherwise(JobKind.SPEED, checkpoints=[]),
    "checkpoints-restored": otherwise(JobKind.LIMITED, report={**REPORT, "restored": []}),
    "integration-fields": otherwise(
        JobKind.QUALITY, described={}, execution=execution_that("FAILED", "States.Runtime")
    ),
    "unknown-field": refused(RefusedKind.UNKNOWN_FIELD, STARTED),
    "invalid-request": refused(RefusedKind.INVALID, ANOTHER),
    "name-in-use": refused(RefusedKind.NAME_IN_USE, ANOTHER),
    "over-quota": refused(RefusedKind.OVER_QUOTA, ANOTHER),
    "sync-times": otherwise(
        JobKind.QUALITY,
        execution=execution_that("SUCCEEDED", output={"CreationTime": "2026-11-22T08:00:00.000Z"}),
    ),
    "sync-failed": otherwise(
        JobKind.FAILED, execution=execution_that("FAILED", "States.TaskFailed", "x")
    ),
    "sync-stopped": otherwise(JobKind.STOPPED, execution=STARTED),
    "task-token": replace(AS_ASSUMED, task_output="text"),
    "definitions-valid": replace(AS_ASSUMED, definitions={"train": "a problem"}),
    "job-event-tags": replace(
        AS_ASSUMED,
        messages=[{"source": "aws.sagemaker", "detail": {"Tags": [{"Key": "a", "Value": "b"}]}}],
    ),
    "execution-event": replace(AS_ASSUMED, messages=[{"source": "aws.states", "detail": {}}]),
    "schedule-time": replace(
        AS_ASSUMED, messages=[{"scheduled": "<aws.scheduler.scheduled-time>"}]
    ),
    "quota-lookup": replace(AS_ASSUMED, quota=None),
}


def test_the_tested_toolkits_are_those_that_are_locked() -> None:
    locked = [re.search(r"sagemaker-training==(\S+)", file.read_text())[1]
              for file in REQUIREMENTS.glob("toolkit*.in")]  # fmt: skip

    assert sorted(locked) == sorted(TESTED_TOOLKITS)


def agreements(observed, *, simulated=False):
    rows = compare(load_assumptions(), observed, simulated=simulated)
    return {row.id: row.agreement for row in rows}


def test_aws_as_it_is_assumed_agrees_in_everything_that_can_be_checked() -> None:
    rows = agreements(AS_ASSUMED)

    assert {name for name, one in rows.items() if one == Agreement.AGREES} == set(CHECKS)
    assert set(rows.values()) == {Agreement.AGREES, Agreement.NOT_CHECKED}


@pytest.mark.parametrize("name", CHECKS)
def test_another_behaviour_differs(name) -> None:
    assert agreements(OTHER_WORLDS[name])[name] == Agreement.DIFFERS


def test_what_was_not_seen_neither_agrees_nor_differs() -> None:
    rows = agreements(Observations(quota=1))

    assert set(rows.values()) == {Agreement.NOT_SEEN, Agreement.NOT_CHECKED, Agreement.AGREES}
    assert rows["quota-lookup"] == Agreement.AGREES


def test_the_embedded_cloud_does_not_answer_for_aws() -> None:
    rows = agreements(AS_ASSUMED, simulated=True)

    own = {one.id for one in load_assumptions() if one.needs_account}
    assert own
    assert {name for name, one in rows.items() if one == Agreement.NEEDS_ACCOUNT} == own


def test_the_record_keeps_no_account_id() -> None:
    job = replace(PROBE, described=described("Failed", FailureReason="arn:aws:iam::123456789012:r"))
    seen = replace(AS_ASSUMED, jobs={**AS_ASSUMED.jobs, JobKind.FAILED: job})
    rows = compare(load_assumptions(), seen, simulated=False)
    record = Record({"date": "2026-11-22", "region": "us-east-1"}, rows)
    document = record.document()

    assert "123456789012" not in json.dumps(document) + record.page()
    assert "arn:aws:iam::ACCOUNT:r" in record.page()
    assert document["region"] == "us-east-1"
    assert len(document["assumptions"]) == len(load_assumptions())
