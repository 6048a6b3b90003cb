"""A deployment in mid-trial: what runs finishes on the old code, what starts runs the new."""

from __future__ import annotations

import json
import re

import pytest

import app as cdk_app
from compilegate.domain.naming import stack_name
from compilegate_localcloud import api
from compilegate_localcloud.deploy import deploy
from compilegate_localcloud.names import STAGE
from stacks.assets import stage_bundle

pytestmark = pytest.mark.e2e
CANDIDATE = 1
# Every step of the next release but cleaning up says which release it is, and fails.
NEXT_RELEASE = """

from contextlib import contextmanager as _contextmanager

_logged = logged


@_contextmanager
def logged(step, event):
    if step != "abort_trial":
        raise RuntimeError("this is the next release")
    with _logged(step, event):
        yield
"""


@pytest.fixture
def app(app_of_its_own):
    """What is deployed here would break every other test."""
    return app_of_its_own


@pytest.fixture(scope="module")
def next_release(tmp_path_factory):
    """The assembly of a release whose functions fail with a marker of their own."""

    def stage_next(folder):
        stage_bundle(folder)
        with (folder / "lambdas" / "logs.py").open("a") as file:
            file.write(NEXT_RELEASE)
        return folder

    folder = tmp_path_factory.mktemp("next")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cdk_app, "stage_bundle", stage_next)
        cdk_app.synthesise({**cdk_app.default_context(), "stage": STAGE}, folder)
    return folder


def versions_called(app, running):
    """Function → versions that an execution called."""
    pages = (
        app.client("stepfunctions")
        .get_paginator("get_execution_history")
        .paginate(executionArn=running.execution)
    )
    called = {}
    for arn, version in re.findall(
        r"function:([a-z-]+):(\d+)", json.dumps([page["events"] for page in pages], default=str)
    ):
        called.setdefault(arn, set()).add(version)
    return called


def test_a_trial_finishes_on_the_code_that_it_began_with(app, trial, next_release, tmp_path):
    deployed = tmp_path / "deployed"
    running = trial(wait_for=str(deployed))
    running.wait_for_full_run(CANDIDATE)
    deploy(app.cloud.state(), next_release)
    deployed.touch()
    later = trial()

    running.output(90)
    assert "promote" == running.record("decision")["verdict"]
    assert {frozenset({"1"})} == {frozenset(v) for v in versions_called(app, running).values()}
    refused = later.wait()
    assert "FAILED" == refused["status"]
    assert "this is the next release" in refused["cause"]
    assert {frozenset({"2"})} == {frozenset(v) for v in versions_called(app, later).values()}


def test_events_call_the_new_code(app):
    """After the deployment above."""
    name = f"{stack_name(STAGE)}-abort-trial"
    live = app.client("lambda").get_alias(FunctionName=name, Name="live")

    versions = app.client("lambda").list_versions_by_function(FunctionName=name)["Versions"]
    assert "2" == live["FunctionVersion"]
    assert ["$LATEST", "1", "2"] == [version["Version"] for version in versions]


def test_a_destroyed_stack_leaves_no_schedule_and_can_be_deployed_again(app):
    """After the tests above: nothing of this cloud is used any more."""
    scheduler = app.client("scheduler")
    target = {"Arn": app.outputs["TrainStateMachine"], "RoleArn": app.outputs["SchedulerRole"]}
    scheduler.create_schedule(
        Name="nightly",
        GroupName=app.outputs["ScheduleGroup"],
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )
    stack = stack_name(STAGE)
    cloudformation = app.client("cloudformation")
    cloudformation.delete_stack(StackName=stack)
    cloudformation.get_waiter("stack_delete_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )

    groups = scheduler.list_schedule_groups(NamePrefix=stack)["ScheduleGroups"]
    assert ([], []) == (groups, scheduler.list_schedules()["Schedules"])
    again = api.up(cloud=app.cloud).outputs
    assert app.outputs["ScheduleGroup"] == again["ScheduleGroup"]
