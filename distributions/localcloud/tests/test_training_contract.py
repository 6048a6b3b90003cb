"""What a training script can rely on, the same as in a SageMaker container."""

import json
from datetime import timedelta

import pytest

from distributions.localcloud.tests.helpers import BUCKET, jobs_named

pytestmark = pytest.mark.e2e

REPORT = """
import json, os, pathlib, sys
print('compilegate step=1 loss=0.5')
print('compilegate step=2 loss=0.25')
env, channel = dict(os.environ), pathlib.Path(os.environ["SM_CHANNEL_TRAIN"])
env["FILES"] = json.dumps({p.name: p.read_text() for p in channel.rglob("*") if p.is_file()})
config = pathlib.Path(os.environ["SM_INPUT_CONFIG_DIR"], "hyperparameters.json")
env["CONFIG"] = config.read_text()
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "seen.json").write_text(json.dumps(
    {"env": env, "args": sys.argv[1:], "path": sys.path, "cwd": os.getcwd()}))
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.bin").write_text("weights")
"""
HYPERPARAMETERS = {
    "epochs": "3", "name": '"bert"', "raw": "not-json", "flag": "true",
    "nested": '{"b": 2, "a": 1}', "v": "9",
}  # fmt: skip
ENVIRONMENT = {
    "CACHE": "/opt/ml/checkpoints/inductor", "PLAIN": "/opt/mlx", "ROOT": "/opt/ml",
}  # fmt: skip
METRICS = {"loss": "compilegate .*loss=([0-9.]+)", "never": "absent=([0-9.]+)"}


@pytest.fixture(scope="module")
def seen(trainer):
    """What one script with every feature saw."""
    trainer.put("in/train/a.txt", b"alpha")
    trainer.put("in/train/deep/b.txt", b"beta")
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/in/train"}
    name = trainer.start(
        REPORT,
        hyperparameters=HYPERPARAMETERS,
        AlgorithmSpecification={
            "TrainingImage": "image",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": name, "Regex": text} for name, text in METRICS.items()],
        },
        InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": source}}],
        Environment=ENVIRONMENT,
    )
    job = trainer.wait(name)
    assert job["TrainingJobStatus"] == "Completed", job
    return {"job": job, **json.loads(trainer.output(name)["seen.json"])}


def test_hyperparameters_become_arguments_as_the_toolkit_makes_them(seen):
    assert seen["args"] == [
        "--epochs", "3", "--flag", "True", "--name", "bert",
        "--nested", "a=1,b=2", "--raw", "not-json", "-v", "9",
    ]  # fmt: skip


def test_hyperparameters_become_variables_as_the_toolkit_makes_them(seen):
    env = seen["env"]

    assert env["SM_HP_EPOCHS"] == "3"
    assert env["SM_HP_NAME"] == "bert"
    assert env["SM_HP_FLAG"] == "true"
    assert json.loads(env["SM_HP_NESTED"]) == {"a": 1, "b": 2}
    assert json.loads(env["SM_HPS"]) == {
        "epochs": 3, "flag": True, "name": "bert", "nested": {"a": 1, "b": 2},
        "raw": "not-json", "v": 9,
    }  # fmt: skip
    assert json.loads(env["CONFIG"])["name"] == '"bert"'


def test_channels_arrive_with_their_folders(seen):
    assert json.loads(seen["env"]["FILES"]) == {"a.txt": "alpha", "b.txt": "beta"}
    assert json.loads(seen["env"]["SM_CHANNELS"]) == ["train"]


def test_environment_paths_in_the_container_are_mapped_to_the_job(seen):
    root = seen["env"]["SM_OUTPUT_DIR"].removesuffix("/output")

    assert seen["env"]["CACHE"] == f"{root}/checkpoints/inductor"
    assert seen["env"]["ROOT"] == root
    assert seen["env"]["PLAIN"] == "/opt/mlx"


def test_code_folder_is_where_the_script_runs_and_imports_from(seen):
    code = seen["env"]["SM_OUTPUT_DIR"].removesuffix("/output") + "/code"

    assert seen["cwd"] == seen["path"][0] == code
    assert seen["env"]["PYTHONPATH"].split(":")[0] == code
    assert seen["env"]["SM_USER_ENTRY_POINT"] == "train.py"
    assert seen["env"]["SM_MODULE_DIR"] == f"s3://{BUCKET}/source/{_name(seen)}.tar.gz"


def test_the_toolkit_says_what_it_says_in_a_container(seen):
    """Variables of AWS's own making, which nothing here sets."""
    assert json.loads(seen["env"]["SM_TRAINING_ENV"])["job_name"] == _name(seen)
    assert seen["env"]["SM_FRAMEWORK_MODULE"] == "sagemaker_pytorch_container.training:main"
    assert {"MASTER_ADDR": "algo-1", "MASTER_PORT": "7777", "NCCL_DEBUG": "WARN"}.items() <= (
        seen["env"].items()
    )


def _name(seen):
    return seen["job"]["TrainingJobName"]


def test_script_reads_an_empty_standard_input(trainer):
    """Where the number is free, the first file that a script opens becomes its standard input."""
    name = trainer.run(
        "import os, pathlib, sys\n"
        "folder = pathlib.Path(os.environ['SM_OUTPUT_DATA_DIR'])\n"
        "folder.joinpath('read').write_text(repr(sys.stdin.read()))\n"
    )["TrainingJobName"]

    assert trainer.output(name) == {"read": b"''"}


def test_job_calls_the_local_cloud_and_no_real_account(seen, cloud):
    assert seen["env"]["AWS_ENDPOINT_URL"] == cloud.state().endpoint
    assert "AWS_PROFILE" not in seen["env"]


def test_last_value_of_each_metric_is_described(seen):
    metrics = {m["MetricName"]: m["Value"] for m in seen["job"]["FinalMetricDataList"]}

    assert metrics == {"loss": 0.25}


def test_describe_tells_times_as_the_service_does(seen):
    job = seen["job"]
    steps = [step["Status"] for step in job["SecondaryStatusTransitions"]]

    assert steps == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert job["CreationTime"] <= job["TrainingStartTime"] < job["TrainingEndTime"]
    assert job["BillableTimeInSeconds"] == job["TrainingTimeInSeconds"] >= 1


def test_model_is_where_describe_says(seen, trainer):
    uri = seen["job"]["ModelArtifacts"]["S3ModelArtifacts"]

    assert uri.endswith(f"/out/{seen['job']['TrainingJobName']}/output/model.tar.gz")
    assert trainer.archive(uri) == {"model.bin": b"weights"}


def test_checkpoints_that_a_job_deletes_are_deleted_in_s3(trainer):
    script = (
        "import os, pathlib\n"
        "folder = pathlib.Path(os.environ['C'])\n"
        "for path in folder.iterdir(): path.unlink()\n"
        "(folder / os.environ['TRAINING_JOB_NAME']).write_text('x')\n"
    )
    keys = {
        "CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/cache/gone"},
        "Environment": {"C": "/opt/ml/checkpoints"},
    }
    trainer.run(script, **keys)
    second = trainer.run(script, **keys)["TrainingJobName"]
    listed = trainer.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="cache/gone")

    assert [f"cache/gone/{second}"] == [item["Key"] for item in listed["Contents"]]


def test_checkpoints_are_saved_while_the_job_runs(trainer):
    script = (
        "import pathlib, time, os\n"
        "pathlib.Path(os.environ['C'], 'half').write_text('1')\ntime.sleep(30)\n"
    )
    name = trainer.start(
        script,
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/cache/live"},
        Environment={"C": "/opt/ml/checkpoints"},
    )
    s3 = trainer.client("s3")

    def listed():
        return s3.list_objects_v2(Bucket=BUCKET, Prefix="cache/live").get("Contents", [])

    trainer.wait_until(name, lambda _: listed())
    trainer.client("sagemaker").stop_training_job(TrainingJobName=name)

    assert listed()[0]["Key"] == "cache/live/half"


def test_a_launcher_that_takes_a_machine_for_itself_is_left_out_and_the_log_says_so(trainer):
    script = "import os; print('ranks: ' + os.environ.get('OMPI_COMM_WORLD_SIZE', 'none'))"
    cluster = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 8, "VolumeSizeInGB": 1}
    job = trainer.run(
        script, hyperparameters={"sagemaker_mpi_enabled": "true"}, ResourceConfig=cluster
    )

    assert trainer.log_lines(job["TrainingJobName"]) == [
        "local cloud: InstanceCount is 8, one process runs for all of them",
        "local cloud: the script starts without its launcher, MPI",
        "ranks: none",
    ]


def test_jobs_are_listed_newest_first_and_filtered_by_page(trainer, client):
    """A page is one of all jobs: none of it may be left, and another page follow."""
    names = [trainer.start("", name=f"listed-{number}") for number in range(2)]
    for name in names:
        trainer.wait(name)
    sagemaker = client("sagemaker")
    page = sagemaker.list_training_jobs(NameContains="listed-0", MaxResults=1)
    first = sagemaker.describe_training_job(TrainingJobName="listed-0")["CreationTime"]
    later = first + timedelta(milliseconds=1)

    assert jobs_named(sagemaker, "listed-") == ["listed-1", "listed-0"]
    assert [] == page["TrainingJobSummaries"]
    assert jobs_named(sagemaker, "listed-0") == ["listed-0"]
    assert jobs_named(sagemaker, "listed-", CreationTimeAfter=later) == ["listed-1"]
    assert jobs_named(sagemaker, "listed-", StatusEquals="InProgress") == []
