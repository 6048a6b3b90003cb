"""The request of a production run: a trial's full run, but kept and tagged as production's."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.errors import NotFoundError
from compilegate.domain.service_limits import problems
from compilegate.facts import read
from tests.domain.workload_builder import SOUND, change
from tests.usecases.production.runs import NAME, Production

MODEL = read("create_training_job")


@pytest.fixture
def production():
    return Production(change(SOUND, owner="ml-platform", tags={"cost-centre": "4711"}))


def tags(request):
    return {tag["Key"]: tag["Value"] for tag in request["Tags"]}


def values(request):
    return {key: json.loads(value) for key, value in request["HyperParameters"].items()}


def test_the_baseline_is_the_registered_job(production):
    production.begin()

    request = production.build()

    assert [] == list(problems(request, MODEL))
    sent = values(request)
    assert ("baseline", "none", 32, 1) == (
        sent["arm"], sent["compiler"], sent["batch_size"], sent["seed"],
    )  # fmt: skip
    assert f"cg-{NAME}-{production.run}-p0" == request["TrainingJobName"]


def test_a_spot_job_keeps_its_checkpoints_beside_its_output():
    production = Production(change(SOUND, training__spot=True, training__max_wait_hours=24))
    production.begin()

    place = production.build()["CheckpointConfig"]["S3Uri"]
    assert f"s3://data/production/{NAME}/{production.run}/jobs/checkpoints/p0/" == place


def test_the_job_says_whose_it_is(production):
    production.promote()
    production.begin()

    assert {
        "compilegate:workload": NAME,
        "compilegate:run": production.run,
        "compilegate:stage": "production",
        "compilegate:arm": "compile",
        "compilegate:execution": production.execution,
        "compilegate:decision": "d1",
        "owner": "ml-platform",
        "cost-centre": "4711",
    } == tags(production.build())


@pytest.mark.parametrize(
    ("attempt", "instance", "why"),
    [
        ({"rerun": True, "instance_type": None}, "ml.g5.48xlarge", "rerun"),
        ({"rerun": False, "instance_type": "ml.p4d.24xlarge"}, "ml.p4d.24xlarge", "fallback"),
    ],
    ids=["rerun", "fallback"],
)
def test_after_a_failure_or_elsewhere_the_baseline_is_trained(production, attempt, instance, why):
    production.promote()
    production.begin()
    production.attempt = {"number": 1, **attempt}

    request = production.build()

    assert ("baseline", "none") == (values(request)["arm"], values(request)["compiler"])
    assert instance == request["ResourceConfig"]["InstanceType"]
    assert request["TrainingJobName"].endswith("-p1")
    assert why == request["Environment"]["COMPILEGATE_WHY"]
    assert "compilegate:decision" not in tags(request)
    assert "COMPILEGATE_DECISION_ID" not in request["Environment"]


def test_a_run_that_was_never_begun_has_no_request(production):
    production.run = "00000000"

    with pytest.raises(NotFoundError, match="never begun"):
        production.build()
