"""How jobs fail, stop and are refused."""

import time

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from distributions.localcloud.tests.failures import Failure, kill_job
from distributions.localcloud.tests.helpers import BUCKET, alive

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


def test_a_killed_process_fails_with_its_exit_code(trainer, cloud):
    name = trainer.start("import time\nprint('up', flush=True)\ntime.sleep(60)")
    trainer.wait_for_line(name, "up")
    kill_job(cloud.state(), name)
    job = trainer.wait(name)

    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].endswith("exit code: 137")


def test_stopped_job_keeps_its_output_and_model(trainer, client):
    script = (
        "import os, time\nopen(os.environ['SM_MODEL_DIR'] + '/half', 'w').write('1')\n"
        "print('up', flush=True)\ntime.sleep(60)\n"
    )
    name = trainer.start(script)
    trainer.wait_for_line(name, "up")
    client("sagemaker").stop_training_job(TrainingJobName=name)
    job = trainer.wait(name)
    steps = [step["Status"] for step in job["SecondaryStatusTransitions"]]

    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert steps[-3:] == ["Stopping", "Uploading", "Stopped"]
    assert trainer.archive(job["ModelArtifacts"]["S3ModelArtifacts"]) == {"half": b"1"}


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


def test_unknown_job_is_not_found(client):
    with pytest.raises(ClientError) as caught:
        client("sagemaker").describe_training_job(TrainingJobName="never")

    assert caught.value.response["Error"] == {
        "Code": "ValidationException", "Message": "Requested resource not found.",
    }  # fmt: skip


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


def test_missing_source_fails_the_job_in_the_toolkit(trainer):
    hyperparameters = {"sagemaker_submit_directory": f"s3://{BUCKET}/absent.tar.gz"}
    job = trainer.run("", hyperparameters=hyperparameters)

    assert job["FailureReason"].startswith("AlgorithmError: Framework Error:")
    assert "download_and_extract" in job["FailureReason"]


def test_throttled_call_is_refused_once(trainer, failing, cloud):
    """The SDK tries again by itself unless told not to, here as on AWS."""
    once = cloud.running_state().session().client(
        "sagemaker", endpoint_url=cloud.state().endpoint,
        config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip
    request = trainer.request("")
    failing(Failure.THROTTLED)
    with pytest.raises(ClientError) as caught:
        once.create_training_job(**request)

    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert once.create_training_job(**request)["TrainingJobArn"]


def test_exceeded_limit_is_refused(trainer, failing):
    failing(Failure.LIMIT_EXCEEDED)

    assert refused(trainer)["Code"] == "ResourceLimitExceeded"


def test_want_of_capacity_fails_the_job_before_it_starts(trainer, failing):
    failing(Failure.NO_CAPACITY)
    job = trainer.run("")

    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("CapacityError: Unable to provision")
    assert "TrainingStartTime" not in job


def test_process_that_leaves_its_group_ends_with_the_job(trainer):
    """Its output goes elsewhere: the toolkit waits for whoever still writes to the job's."""
    script = (
        "import subprocess, sys, os\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "open(os.environ['SM_OUTPUT_DATA_DIR'] + '/pid', 'w').write(str(child.pid))\n"
    )
    name = trainer.run(script)["TrainingJobName"]
    pid = int(trainer.output(name)["pid"])

    assert not alive(pid)
