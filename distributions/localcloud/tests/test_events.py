"""Events that rules can act on, delivered to real Lambda targets."""

import pytest

from distributions.localcloud.tests.test_state_machine_training import machine

pytestmark = pytest.mark.e2e

EXECUTION = "Step Functions Execution Status Change"


def execution_rule(*statuses):
    return {
        "source": ["aws.states"],
        "detail-type": [EXECUTION],
        "detail": {"status": list(statuses)},
    }


WAIT = machine(Wait={"Type": "Wait", "Seconds": 60, "End": True})
FAIL = machine(Stop={"Type": "Fail", "Error": "Broken", "Cause": "on purpose"})


@pytest.mark.parametrize(
    ("definition", "status", "error"),
    [
        (FAIL, "FAILED", "Broken"),
        (WAIT, "ABORTED", None),
        ({**WAIT, "TimeoutSeconds": 1}, "TIMED_OUT", None),
    ],
    ids=["failed", "stopped", "too long"],
)
def test_an_execution_that_ends_badly_is_an_event(machines, events_of, definition, status, error):
    wait_for = events_of(execution_rule(status))
    execution = machines.start(definition)
    if status == "ABORTED":
        machines.client("stepfunctions").stop_execution(executionArn=execution)
    detail = wait_for(1)[0]["detail"]

    assert (execution, status) == (detail["executionArn"], detail["status"])
    assert (error, error and "on purpose") == (detail.get("error"), detail.get("cause"))


def test_training_job_changes_are_events_as_sagemaker_sends_them(trainer, events_of):
    wait_for = events_of({"source": ["aws.sagemaker"]})
    name = trainer.run("raise SystemExit(1)")["TrainingJobName"]
    events = [event for event in wait_for(5) if event["detail"]["TrainingJobName"] == name]
    last = next(e for e in events if e["detail"]["TrainingJobStatus"] == "Failed")

    assert last["detail-type"] == "SageMaker Training Job State Change"
    assert last["resources"] == [last["detail"]["TrainingJobArn"]]
    assert isinstance(last["detail"]["CreationTime"], int)
    assert last["detail"]["CreationTime"] > 1e12
    assert last["detail"]["Tags"] == {"compilegate:stage": "quality"}
    assert last["detail"]["FailureReason"].endswith("exit code: 1")
    assert not {"BillableTimeInSeconds", "FinalMetricDataList"} & last["detail"].keys()
