"""createTrainingJob.sync: what a state machine sees, and that it leaves no job running."""

import json
import time

import pytest

from distributions.localcloud.tests.failures import Failure

pytestmark = pytest.mark.e2e

SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(60)\n"


def train_state(**fields):
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
        "Arguments": (
            "{% $merge([$states.input, {'TrainingJobName': $states.input.TrainingJobName & '-r'"
            " & $string($states.context.State.RetryCount)}]) %}"
        ),
        "End": True,
        **fields,
    }


def machine(**states):
    first = next(iter(states))
    return {"QueryLanguage": "JSONata", "StartAt": first, "States": states}


def each(state):
    """A Map over requests, as the evaluation uses it."""
    return {
        "Type": "Map",
        "Items": "{% $states.input %}",
        "ItemProcessor": {"StartAt": "Train", "States": {"Train": state}},
        "End": True,
    }


def stopped(trainer, name):
    return trainer.wait(name, seconds=10)["TrainingJobStatus"]


def test_completed_job_is_the_result_with_times_in_milliseconds(trainer, machines):
    request = trainer.request("")
    result = machines.run(machine(Train=train_state()), request)

    assert result["status"] == "SUCCEEDED"
    assert result["out"]["TrainingJobName"] == f"{request['TrainingJobName']}-r0"
    assert result["out"]["TrainingJobStatus"] == "Completed"
    assert abs(result["out"]["CreationTime"] / 1000 - time.time()) < 60
    assert result["out"]["BillableTimeInSeconds"] >= 1


def test_step_functions_tags_the_jobs_it_waits_for(trainer, machines, client):
    request = trainer.request("")
    machines.run(machine(Train=train_state()), request)
    arn = trainer.describe(f"{request['TrainingJobName']}-r0")["TrainingJobArn"]
    tags = {t["Key"]: t["Value"] for t in client("sagemaker").list_tags(ResourceArn=arn)["Tags"]}

    assert tags["MANAGED_BY_AWS"] == "STARTED_BY_STEP_FUNCTIONS"


def test_failed_job_is_a_failed_task_whose_cause_describes_the_job(trainer, machines):
    request = trainer.request("raise SystemExit(7)")
    result = machines.run(machine(Train=train_state()), request)
    described = json.loads(result["cause"])

    assert (result["status"], result["error"]) == ("FAILED", "States.TaskFailed")
    assert described["TrainingJobStatus"] == "Failed"
    assert described["FailureReason"].endswith("exit code: 1")


def test_failed_job_can_be_caught(trainer, machines):
    states = {
        "Train": train_state(
            Catch=[
                {
                    "ErrorEquals": ["States.TaskFailed"],
                    "Output": "{% $parse($states.errorOutput.Cause).TrainingJobStatus %}",
                    "Next": "Settle",
                }
            ]
        ),
        "Settle": {"Type": "Pass", "End": True},
    }
    result = machines.run(machine(**states), trainer.request("raise SystemExit(1)"))

    assert result["out"] == "Failed"


def test_throttled_creation_is_retried_under_a_new_name(trainer, machines, failing):
    failing(Failure.THROTTLED, count=2)
    request = trainer.request("")
    retry = [
        {
            "ErrorEquals": ["SageMaker.AmazonSageMakerException"],
            "IntervalSeconds": 1,
            "MaxAttempts": 3,
            "BackoffRate": 1,
            "JitterStrategy": "FULL",
        }
    ]
    result = machines.run(machine(Train=train_state(Retry=retry)), request)

    assert result["out"]["TrainingJobName"] == f"{request['TrainingJobName']}-r2"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure.THROTTLED, "SageMaker.AmazonSageMakerException"),
        (Failure.LIMIT_EXCEEDED, "SageMaker.ResourceLimitExceededException"),
    ],
)
def test_refused_creation_is_named_as_aws_names_it(trainer, machines, failing, failure, error):
    failing(failure)
    result = machines.run(machine(Train=train_state()), trainer.request(""))

    assert (result["status"], result["error"]) == ("FAILED", error)
    assert "Service: AmazonSageMaker; Status Code: 400" in result["cause"]


def test_name_that_is_taken_is_an_error_of_its_own(trainer, machines):
    request = trainer.request("")
    machines.run(machine(Train=train_state()), request)
    result = machines.run(machine(Train=train_state()), request)

    assert result["error"] == "SageMaker.ResourceInUseException"


def test_stopping_the_execution_stops_its_jobs(trainer, machines, client):
    requests = [trainer.request(SLEEP) for _ in range(2)]
    execution = machines.start(machine(Each=each(train_state())), requests)
    names = [f"{request['TrainingJobName']}-r0" for request in requests]
    for name in names:
        trainer.wait_until_training(name)
    client("stepfunctions").stop_execution(executionArn=execution, error="User", cause="enough")

    assert [stopped(trainer, name) for name in names] == ["Stopped", "Stopped"]
    state = machines.wait(execution)
    assert (state["status"], state["error"], state["cause"]) == ("ABORTED", "User", "enough")
    kinds = [event["type"] for event in machines.events(execution)]
    assert kinds[-1] == "ExecutionAborted"
    assert "TaskSucceeded" not in kinds


def test_failing_sibling_stops_the_other_job(trainer, machines):
    slow = trainer.request(SLEEP)
    broken = trainer.request("import time\ntime.sleep(0.6)\nraise SystemExit(1)")
    result = machines.run(machine(Each=each(train_state())), [slow, broken])

    assert result["status"] == "FAILED"
    assert stopped(trainer, f"{slow['TrainingJobName']}-r0") == "Stopped"


def test_state_that_times_out_stops_its_job(trainer, machines):
    request = trainer.request(SLEEP)
    result = machines.run(machine(Train=train_state(TimeoutSeconds=1)), request)

    assert (result["status"], result["error"]) == ("FAILED", "States.Timeout")
    assert stopped(trainer, f"{request['TrainingJobName']}-r0") == "Stopped"


def test_machine_that_times_out_stops_its_job(trainer, machines):
    request = trainer.request(SLEEP)
    definition = {**machine(Train=train_state()), "TimeoutSeconds": 1}
    result = machines.run(definition, request)

    assert result["status"] == "TIMED_OUT"
    assert stopped(trainer, f"{request['TrainingJobName']}-r0") == "Stopped"


def test_job_stopped_by_another_hand_fails_the_task(trainer, machines, client):
    request = trainer.request(SLEEP)
    execution = machines.start(machine(Train=train_state()), request)
    name = f"{request['TrainingJobName']}-r0"
    trainer.wait_until_training(name)
    client("sagemaker").stop_training_job(TrainingJobName=name)
    state = machines.wait(execution)

    assert (state["status"], state["error"]) == ("FAILED", "States.TaskFailed")
    assert json.loads(state["cause"])["TrainingJobStatus"] == "Stopped"


def test_call_without_sync_does_not_wait(trainer, machines):
    request = trainer.request(SLEEP)
    state = train_state(Resource="arn:aws:states:::sagemaker:createTrainingJob")
    result = machines.run(machine(Train=state), request)
    name = f"{request['TrainingJobName']}-r0"
    trainer.client("sagemaker").stop_training_job(TrainingJobName=name)

    assert result["out"]["TrainingJobArn"].endswith(name)


@pytest.fixture
def measuring(trainer, client):
    """As many measuring jobs as the machine has cores for."""
    names = [trainer.start(SLEEP, stage="speed") for _ in range(2)]
    for name in names:
        trainer.wait_until(name, lambda job: job["SecondaryStatus"] == "Training")
    yield names
    for name in names:
        if trainer.describe(name)["TrainingJobStatus"] == "InProgress":
            client("sagemaker").stop_training_job(TrainingJobName=name)
    assert ["Stopped"] * 2 == [trainer.wait(name)["TrainingJobStatus"] for name in names]


def test_a_job_that_has_no_core_is_pending_until_a_measuring_job_ends(trainer, client, measuring):
    job = trainer.start("import os\nprint(os.environ.get('OMP_NUM_THREADS'))", stage="quality")
    trainer.wait_until(job, lambda job: job["SecondaryStatus"] == "Pending", seconds=5)
    waiting = trainer.describe(job)
    client("sagemaker").stop_training_job(TrainingJobName=measuring[0])

    assert "TrainingStartTime" not in waiting
    assert trainer.wait(job)["TrainingJobStatus"] == "Completed"
    assert trainer.log_lines(job) == ["1"]


@pytest.mark.usefixtures("measuring")
def test_pending_job_can_be_stopped(trainer, client):
    name = trainer.start("")
    trainer.wait_until(name, lambda job: job["SecondaryStatus"] == "Pending", seconds=5)
    client("sagemaker").stop_training_job(TrainingJobName=name)
    job = trainer.wait(name, seconds=5)

    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")


def test_a_field_that_the_integration_does_not_know_ends_the_execution_past_every_catch(
    trainer, machines
):
    request = trainer.request("", ProfilerConfig={"DisableProfiler": True})
    caught = {"Next": "Settle", "Output": {}}
    state = train_state(
        Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        Catch=[{"ErrorEquals": [name], **caught} for name in ("States.TaskFailed", "States.ALL")],
    )
    result = machines.run(machine(Train=state, Settle={"Type": "Pass", "End": True}), request)

    assert (result["status"], result["error"]) == ("FAILED", "States.Runtime")
    assert 'The field "ProfilerConfig" is not supported by Step Functions' in result["cause"]
    assert not trainer.client("sagemaker").list_training_jobs(
        NameContains=request["TrainingJobName"]
    )["TrainingJobSummaries"]
