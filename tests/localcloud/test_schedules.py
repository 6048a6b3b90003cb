"""Schedules start state machines as EventBridge Scheduler does, and say for when."""

import json
import time
import uuid
from datetime import UTC, datetime

import pytest

from compilegate.adapters.state_machines import EventBridgeSchedules
from distributions.localcloud.tests.helpers import eventually

pytestmark = pytest.mark.e2e

GROUP = "compilegate-schedules"
ROLE = "arn:aws:iam::000000000000:role/any"
PASS = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}


@pytest.fixture
def machine(client):
    machine = client("stepfunctions").create_state_machine(
        name=f"train-{uuid.uuid4().hex[:8]}", definition=json.dumps(PASS), roleArn=ROLE
    )
    return machine["stateMachineArn"]


@pytest.fixture
def schedules(client, machine):
    scheduler = client("scheduler")
    if GROUP not in [one["Name"] for one in scheduler.list_schedule_groups()["ScheduleGroups"]]:
        scheduler.create_schedule_group(Name=GROUP)
    return EventBridgeSchedules(scheduler, group=GROUP, machine=machine, role=ROLE)


@pytest.fixture
def inputs(client, machine):
    """Waits for so many executions of the machine; returns what each was given."""
    states = client("stepfunctions")

    def wait_for(count, seconds=10):
        def started():
            executions = states.list_executions(stateMachineArn=machine)["executions"]
            return len(executions) >= count and executions

        executions = eventually(started, seconds, f"fewer than {count} executions were started")
        arns = [one["executionArn"] for one in executions]
        inputs = [states.describe_execution(executionArn=arn)["input"] for arn in arns]
        return [json.loads(one) for one in inputs]

    return wait_for


def moment(seconds):
    """``seconds`` from now, as expressions and inputs write it."""
    return datetime.fromtimestamp(int(time.time()) + seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")


def test_a_schedule_that_was_changed_fires_at_its_new_time_only(schedules, inputs):
    due = moment(2)
    schedules.put("changed", "at(2199-01-01T00:00:00)")
    schedules.put("changed", f"at({due})")

    assert [{"workload": "changed", "scheduled": f"{due}Z"}] == inputs(1)


def test_a_schedule_fires_once_until_it_is_made_anew(schedules, inputs):
    schedules.put("anew", f"at({moment(0)})")
    inputs(1)
    time.sleep(1.5)
    assert 1 == len(inputs(1))

    schedules.remove("anew")
    schedules.put("anew", f"at({moment(0)})")

    assert 2 == len(inputs(2))
