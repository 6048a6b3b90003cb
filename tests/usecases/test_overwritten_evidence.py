"""An output that was written again: an invalid trial, a production run without evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.adapters.job_outputs import StoredOutputs
from compilegate.domain import naming
from compilegate.domain.job_output import output_uri
from compilegate.usecases.trial.judge_arms import judge_arms
from tests import fakes
from tests.usecases.trial_builder import (
    EVENT,
    SOUND,
    TRIAL,
    asks_speed,
    call_judge,
    ended,
    load,
    outcome,
    plan_trial,
    put_spec,
)


@pytest.fixture
def services() -> Any:
    made = fakes.services("prod")
    put_spec(made, SOUND)
    plan_trial(EVENT, services=made)
    return made


def test_an_overwritten_output_makes_the_trial_invalid_with_a_reason_of_its_own(
    services: Any,
) -> None:
    (run,) = call_judge(services, 0, [], asks_speed())["runs"]
    ended(services, run["run"])
    key = naming.job_output_key("bert-docs", TRIAL, outcome(run["run"])["job"])
    services.store.overwritten.add(f"s3://{services.store.bucket}/{key}")
    answer = judge_arms({**EVENT, "round": 1, "runs": [outcome(run["run"])]}, services=services)

    assert ("invalid", "none") == (answer["verdict"], answer["next_stage"])
    (reason,) = load(services, "decision")["reasons"]
    assert "evidence_overwritten" == reason["code"]
    assert key in reason["message"]


def test_a_production_run_with_an_overwritten_output_is_no_evidence(services: Any) -> None:
    described = {
        "TrainingJobName": "nightly",
        "TrainingJobStatus": "Completed",
        "OutputDataConfig": {"S3OutputPath": f"s3://{services.store.bucket}/production/bert-docs"},
    }
    services.store.overwritten.add(output_uri(described))
    found = services.outputs.production_run(described, SOUND.quality)

    assert {} == found.result
    assert "was written 2 times" in str(found.problem)


def test_a_run_keeps_which_object_it_was_read_from(services: Any) -> None:
    (run,) = call_judge(services, 0, [], asks_speed())["runs"]
    done = ended(services, run["run"], "baseline", "compile")
    identity, fetch = {"output_etag": '"e"', "output_version": "v1"}, services.store.fetch
    outputs = StoredOutputs(lambda uri: replace(fetch(uri), identity=identity))
    call_judge(replace(services, outputs=outputs), 1, [done], asks_speed(block=1))

    runs = [run for arm in load(services, "evidence")["arms"] for run in arm["runs"]]
    assert runs
    assert [identity] * len(runs) == [{key: run[key] for key in identity} for run in runs]
