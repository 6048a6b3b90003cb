"""Once the flag is applied the decision stands, whatever fails after it."""

from __future__ import annotations

import json

import pytest

from compilegate.domain import naming

pytestmark = pytest.mark.e2e
CANDIDATE = 1


def test_a_report_that_cannot_be_written_does_not_unsay_the_decision(trial, app):
    running = trial(slow="compile")
    running.wait_for_full_run(CANDIDATE)
    app.store.put(naming.record_key(running.workload, running.trial, "eligibility"), b"{")
    found = running.wait()

    assert "SUCCEEDED" == found["status"], found.get("cause")
    output = json.loads(found["output"])
    assert "JSONDecodeError" == output["report_failed"]["error"]
    assert (None, None, None) == tuple(
        output[name] for name in ("report_key", "notify_failed", "release_failed")
    )
    assert ("promote", True) == (output["verdict"], output["flag_enabled"])
    assert running.flag()["enabled"]
    assert {"started", "decision", "flag"} == set(running.entries())
    assert running.lock() is None


def test_a_job_that_nobody_waits_for_is_stopped_and_charged(trial, app):
    """As a lost answer of CreateTrainingJob leaves one behind."""
    running = trial(slow="compile")
    job = running.wait_for_full_run(CANDIDATE)
    run = naming.job_run(running.workload, running.trial, job)
    key = naming.request_key(running.workload, running.trial, run.text)
    request = json.loads(app.store.get(key))
    request["HyperParameters"]["hang"] = json.dumps("compile")
    stray = running.job(f"{run.text}-r9")
    app.client("sagemaker").create_training_job(**{**request, "TrainingJobName": stray})
    found = running.wait()

    assert "SUCCEEDED" == found["status"], found.get("cause")
    plan = running.record("evidence")["plan"]
    assert plan["usd_by_job"][stray] > 0
    assert sum(plan["usd_by_job"].values()) == pytest.approx(plan["spent_usd"])
    running.wait_until_released()
    assert running.jobs()[f"{run.text}-r9"] in ("Stopping", "Stopped")
    assert "promote" == running.record("decision")["verdict"]
