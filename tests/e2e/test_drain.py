"""Draining the deployed app: a trial, a run that trains and one that waits, then nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import pytest
from click.testing import Result
from typer.testing import CliRunner

from compilegate.adapters.state_machines import StepFunctionsExecutions
from compilegate.adapters.stores import DynamoDbTable
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.session import Session
from compilegate.cli.main import app as command
from compilegate.ports import JobListing
from distributions.localcloud.tests.failures import Failure, inject
from distributions.localcloud.tests.helpers import eventually
from tests.e2e.conftest import App, Running
from tests.e2e.production import Production
from tests.e2e.test_register import cloud_of
from tests.fake_clouds import FakeProviders

pytestmark = pytest.mark.e2e


@pytest.fixture
def app(app_of_its_own: App) -> App:
    """What is drained must not be another test's."""
    return app_of_its_own


def connected(app: App) -> Cloud:
    cloud, table = cloud_of(app), app.outputs["LedgerTable"]
    return replace(
        cloud,
        services=replace(cloud.services, locks=DynamoDbTable(app.client("dynamodb"), table)),
        executions=StepFunctionsExecutions(
            app.client("stepfunctions"), app.outputs["EvaluateStateMachine"]
        ),
    )


def test_everything_ends_and_the_stack_may_be_removed(
    app: App, trial: Callable[..., Running]
) -> None:
    cloud = connected(app)
    session = Session(providers=FakeProviders(local_cloud=cloud))

    def drain(*options: str) -> Result:
        return CliRunner().invoke(command, ["drain", "--local", *options], obj=session)

    def unfinished(prefix: str) -> Mapping[str, str]:
        return cast("JobListing", cloud.services.jobs).unfinished(prefix, 0)

    running = trial(hang="baseline")
    running.wait_for_full_run(0)  # first, because a speed job has the machine to itself
    trains = Production(app, "drain-trains", {"hang": "baseline"})
    waits = Production(app, "drain-waits")
    trains.start()
    eventually(lambda: unfinished("cg-drain-trains"), 120, "no job trains")
    inject(app.cloud.state(), Failure.NO_CAPACITY, count=1)
    waits.start(wait_seconds=600)
    eventually(lambda: waits.entries("run_waiting"), 120, "no run waits")
    assert cloud.production is not None
    cloud.production.schedules.put("drain-waits", "rate(1 day)")
    assert 11 == drain("--check").exit_code

    partly = drain("--yes", "--json", "--timeout", "0.05")

    drained = json.loads(partly.stdout)
    assert (11, ["training"]) == (
        partly.exit_code, [run["phase"] for run in drained["in_progress"]["runs"]],
    )  # fmt: skip
    assert 2 == len(drained["stopped"]["executions"])
    assert "ABORTED" == running.wait()["status"]
    assert 1 == len(unfinished("cg-"))

    result = drain("--yes", "--stop-jobs", "--timeout", "2")

    assert 0 == result.exit_code, result.output
    assert "compilegate-local is drained" in result.stdout
    assert {} == unfinished("cg-")
    assert running.lock() is None
    assert [] == list(cloud.production.schedules.enabled())
    assert 0 == drain("--check").exit_code
    assert "failed" in running.entries()
    assert running.flag() is None
    drain("--undo")
