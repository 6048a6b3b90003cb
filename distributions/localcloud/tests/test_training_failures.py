"""How jobs fail, stop and are refused."""

import time

import pytest
from botocore.exceptions import ClientError

from distributions.localcloud.tests.failures import Failure
from distributions.localcloud.tests.helpers import BUCKET

pytestmark = pytest.mark.e2e


def refused(trainer, **changes):
    with pytest.raises(ClientError) as caught:
        trainer.start("", **changes)
    return caught.value.response["Error"]


TOOLKITS = "AlgorithmError: ExecuteUserScriptError:\nExitCode 1"
FAILURE_FILE = """
import os, sys
open(os.environ['SM_OUTPUT_DIR'] + '/failure', 'w').write('loss is not finite')
open(os.environ['SM_OUTPUT_DATA_DIR'] + '/steps', 'w').write('1')
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("raise ValueError('no such column: price')", [TOOLKITS, "ValueError", "column: price"]),
        ("raise ValueError('x' * 5000)", [TOOLKITS]),
        (FAILURE_FILE, ["AlgorithmError: loss is not finite, exit code: 1"]),
    ],
    ids=["last lines", "cut", "failure file"],
)
def test_the_reason_of_a_failure(trainer, script, parts):
    job = trainer.run(script)
    reason = job["FailureReason"]

    assert job["TrainingJobStatus"] == "Failed"
    assert reason.startswith(parts[0])
    assert all(part in reason for part in parts)
    assert reason.endswith("exit code: 1")
    assert len(reason) <= 1024
    assert "ModelArtifacts" not in job
    if script == FAILURE_FILE:
        assert trainer.output(job["TrainingJobName"]) == {"steps": b"1"}


def test_stopped_script_receives_no_signal_and_trains_on_until_it_is_killed(trainer, client):
    script = (
        "import os, signal, sys, time\n"
        "folder = os.environ['SM_OUTPUT_DATA_DIR']\n"
        "def on_signal(*_):\n"
        "    open(folder + '/sigterm', 'w').close()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, on_signal)\n"
        "print('up', flush=True)\n"
        "for _ in range(6000):\n"
        "    with open(folder + '/steps', 'a') as steps:\n"
        "        print(time.time(), file=steps)\n"
        "    time.sleep(0.01)\n"
    )
    name = trainer.start(script)
    trainer.wait_for_line(name, "up")
    asked = time.time()
    client("sagemaker").stop_training_job(TrainingJobName=name)
    job, output = trainer.wait(name, seconds=8), trainer.output(name)

    assert job["TrainingJobStatus"] == "Stopped"
    assert sorted(output) == ["steps"]
    assert float(output["steps"].split()[-1]) > asked


def test_job_that_runs_too_long_is_stopped_for_that(trainer):
    job = trainer.run("import time\ntime.sleep(60)", StoppingCondition={"MaxRuntimeInSeconds": 1})

    assert job["TrainingJobStatus"] == "Stopped"
    assert job["SecondaryStatus"] == "MaxRuntimeExceeded"
    assert "FailureReason" not in job


def test_ended_job_keeps_its_name_and_cannot_be_stopped(trainer, client):
    name = trainer.run("")["TrainingJobName"]
    with pytest.raises(ClientError) as caught:
        client("sagemaker").stop_training_job(TrainingJobName=name)

    assert caught.value.response["Error"] == {
        "Code": "ValidationException",
        "Message": "The request was rejected because the training job is in status Completed.",
    }
    assert refused(trainer, name=name)["Code"] == "ResourceInUse"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "under_score"}, "regular expression pattern"),
        ({"name": "a" * 64}, "length less than or equal to 63"),
        ({"hyperparameters": {"long": "x" * 2501}}, "length less than or equal to 2500"),
        (
            {"ResourceConfig": {"InstanceType": "ml.toaster", "InstanceCount": 1}},
            "enum value set",
        ),
        ({"OutputDataConfig": {"S3OutputPath": "/tmp/out"}}, "regular expression pattern"),
        ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "exactly one of TrainingImage"),
        ({"EnableManagedSpotTraining": True}, "MaxWaitTimeInSeconds is required"),
        ({"Tags": [{"Key": "aws:x", "Value": "y"}]}, "aws:"),
    ],
)
def test_bad_request_is_refused_with_the_rule_it_breaks(trainer, changes, words):
    error = refused(trainer, **changes)

    assert error["Code"] == "ValidationException"
    assert words in error["Message"]


def test_missing_input_fails_the_job_as_a_client_error(trainer):
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/nothing/"}}
    job = trainer.run("", InputDataConfig=[{"ChannelName": "train", "DataSource": source}])

    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("ClientError: Data download failed: No S3 objects")


def test_want_of_capacity_fails_the_job_before_it_starts(trainer, failing):
    failing(Failure.NO_CAPACITY)
    job = trainer.run("")

    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("CapacityError: Unable to provision")
    assert "TrainingStartTime" not in job
