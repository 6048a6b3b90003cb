"""What is stopped, and by whom, when a whole trial goes wrong."""

from __future__ import annotations

import json
from typing import Any

from compilegate.domain import naming
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock
from tests.usecases.trial_builder import EVENT, TRIAL


def test_an_abort_stops_jobs_writes_down_why_and_releases_the_lock(services: Any) -> None:
    acquire_lock(EVENT, services=services)
    job = f"{naming.job_base('bert-docs', TRIAL, 'q1a17')}-r0"
    services.jobs.add(job, "InProgress", 0.0)
    answer = abort_trial({**EVENT, "error": "States.Timeout", "cause": ""}, services=services)

    assert "Stopped" == services.jobs.describe(job)["TrainingJobStatus"]
    assert "longer than its limit" in answer["reason"]
    acquire_lock({**EVENT, "execution": "next"}, services=services)


def test_an_abort_by_event_after_an_abort_by_catch_changes_nothing(services: Any) -> None:
    first = abort_trial({**EVENT, "error": "X", "cause": "because"}, services=services)
    event = {
        "detail": {
            "executionArn": EVENT["execution"], "status": "FAILED",
            "input": json.dumps({k: EVENT[k] for k in ("workload", "trial", "spec_key")}),
        }
    }  # fmt: skip

    assert first == abort_trial(event, services=services)
    kinds = [entry["kind"] for entry in services.ledger.entries("bert-docs")]
    assert kinds.count("failed") == 1


def test_another_execution_of_the_same_trial_cannot_abort_the_one_that_runs(
    services: Any,
) -> None:
    acquire_lock(EVENT, services=services)
    job = f"{naming.job_base('bert-docs', TRIAL, 'q1a17')}-r0"
    services.jobs.add(job, "InProgress", 0.0)
    abort_trial({**EVENT, "execution": "copy", "error": "X", "cause": ""}, services=services)

    assert services.jobs.describe(job)["TrainingJobStatus"] == "InProgress"
    assert "failed" not in [entry["kind"] for entry in services.ledger.entries("bert-docs")]
