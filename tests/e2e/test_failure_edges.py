"""Whatever fails: jobs stopped, reason recorded, lock released, flag unchanged or as decided."""

from __future__ import annotations

import json
import time

import pytest

from compilegate.adapters.state_machines import StepFunctionsExecutions
from compilegate.domain import naming

pytestmark = pytest.mark.e2e
CANDIDATE = 1


def test_a_second_trial_is_refused_and_the_first_goes_on_until_it_is_stopped(trial, app):
    first = trial(hang="compile")
    first.wait_for_full_run(CANDIDATE)
    second = trial(name=first.workload)

    refused = second.wait()
    # No alarm for it: CloudWatch counts executions that failed.
    assert "SUCCEEDED" == refused["status"]
    reason = json.loads(refused["output"])[naming.REFUSED]
    assert "WorkloadLockedError" == reason["error"]
    assert "already being evaluated" in reason["cause"]
    assert first.trial in reason["cause"]
    outcome = StepFunctionsExecutions(app.client("stepfunctions"), "").describe(second.execution)
    assert ("FAILED", reason["cause"]) == (outcome.status, outcome.cause)
    time.sleep(1)  # the second's end must not give the first's lock away
    assert first.lock() is not None
    assert "InProgress" in first.jobs().values()

    app.client("stepfunctions").stop_execution(executionArn=first.execution)
    assert "ABORTED" == first.wait()["status"]
    first.wait_until_released()
    assert "InProgress" not in first.jobs().values()
    assert first.flag() is None
    assert "stopped by hand" in first.entries()["failed"]["reason"]
