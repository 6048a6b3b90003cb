"""createTrainingJob.sync: what a state machine sees, and that it leaves no job running."""

import json
import time

import pytest

from distributions.localcloud.tests.failures import Failure
from distributions.localcloud.tests.helpers import jobs_named

pytestmark = pytest.mark.e2e

SETTLE = {"Settle": {"Type": "Pass", "End": True}}
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


def name_of(request, attempt=0):
    return f"{request['TrainingJobName']}-r{attempt}"


def stopped(trainer, request):
    return trainer.wait(name_of(request), seconds=10)["TrainingJobStatus"]


@pytest.fixture
def waited_for(trainer, machines):
    """Runs a machine that waits for a job; the request, and how the machine ended."""

    def run(script="", *, then=None, limit=None, **state):
        request = trainer.request(script)
        definition = machine(Train=train_state(**state), **(then or {}))
        if limit:
            definition["TimeoutSeconds"] = limit
        return request, machines.run(definition, request)

    return run


def test_completed_job_is_the_result_with_times_in_milliseconds_and_tagged(
    trainer, waited_for, client
):
    request, result = waited_for()
    out = result["out"]
    arn = trainer.describe(name_of(request))["TrainingJobArn"]
    tags = {t["Key"]: t["Value"] for t in client("sagemaker").list_tags(ResourceArn=arn)["Tags"]}

    assert (result["status"], out["TrainingJobStatus"]) == ("SUCCEEDED", "Completed")
    assert out["TrainingJobName"] == name_of(request)
    assert abs(out["CreationTime"] / 1000 - time.time()) < 60
    assert out["BillableTimeInSeconds"] >= 1
    assert tags["MANAGED_BY_AWS"] == "STARTED_BY_STEP_FUNCTIONS"


def test_failed_job_is_a_failed_task_whose_cause_describes_the_job(waited_for):
    _, result = waited_for("raise SystemExit(7)")
    described = json.loads(result["cause"])

    assert (result["status"], result["error"]) == ("FAILED", "States.TaskFailed")
    assert described["TrainingJobStatus"] == "Failed"
    assert described["FailureReason"].endswith("exit code: 1")


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure.THROTTLED, "SageMaker.AmazonSageMakerException"),
        (Failure.LIMIT_EXCEEDED, "SageMaker.ResourceLimitExceededException"),
    ],
)
def test_refused_creation_is_named_as_aws_names_it(waited_for, failing, failure, error):
    failing(failure)
    _, result = waited_for()

    assert (result["status"], result["error"]) == ("FAILED", error)
    assert "Service: AmazonSageMaker; Status Code: 400" in result["cause"]


def test_stopping_the_execution_stops_its_jobs(trainer, machines, client):
    requests = [trainer.request(SLEEP) for _ in range(2)]
    execution = machines.start(machine(Each=each(train_state())), requests)
    for request in requests:
        trainer.wait_until_training(name_of(request))
    client("stepfunctions").stop_execution(executionArn=execution, error="User", cause="enough")

    assert [stopped(trainer, request) for request in requests] == ["Stopped", "Stopped"]
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
    assert stopped(trainer, slow) == "Stopped"


@pytest.mark.parametrize(
    ("how", "status"),
    [({"TimeoutSeconds": 1}, "FAILED"), ({"limit": 1}, "TIMED_OUT")],
    ids=["state", "machine"],
)
def test_what_times_out_stops_its_job(trainer, waited_for, how, status):
    request, result = waited_for(SLEEP, **how)

    assert result["status"] == status
    assert result.get("error", "States.Timeout") == "States.Timeout"
    assert stopped(trainer, request) == "Stopped"


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


def test_a_field_that_the_integration_does_not_know_ends_the_execution_past_every_catch(
    trainer, machines
):
    request = trainer.request("", ProfilerConfig={"DisableProfiler": True})
    caught = {"Next": "Settle", "Output": {}}
    state = train_state(
        Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}],
        Catch=[{"ErrorEquals": [name], **caught} for name in ("States.TaskFailed", "States.ALL")],
    )
    result = machines.run(machine(Train=state, **SETTLE), request)

    assert (result["status"], result["error"]) == ("FAILED", "States.Runtime")
    assert 'The field "ProfilerConfig" is not supported by Step Functions' in result["cause"]
    assert not jobs_named(trainer.client("sagemaker"), request["TrainingJobName"])
