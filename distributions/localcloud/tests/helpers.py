"""Short ways to run training jobs and state machines in the local cloud."""

import contextlib
import gzip
import io
import json
import tarfile
import time
import uuid
import zipfile
from pathlib import Path

from tests.archives import tarball

BUCKET = "localcloud-tests"
ROLE = "arn:aws:iam::000000000000:role/any"
TERMINAL = ("Completed", "Failed", "Stopped")
# What makes a bundle that of the app, whose functions are forked from a process of their own.
APP = {f"compilegate/adapters/{name}.py": "" for name in ("sagemaker", "state_machines", "stores")}
APP |= {"lambdas/handlers.py": "RELEASE = 1\n"}
# Between two questions: a tenth of the time waited so far, within these bounds. What takes seconds
# would otherwise be asked so often that the answers take more of the processor than the work.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 0.4


def eventually(probe, seconds, what):
    """What ``probe`` answers once it is true; fails with ``what`` after that time."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds:
        answer = probe()
        if answer:
            return answer
        time.sleep(min(max(waited / 10, SHORTEST_PAUSE), LONGEST_PAUSE))
    raise AssertionError(f"{what}, after {seconds} s")


def function_bundle(source, files=None):
    """A Lambda bundle with one module, ``index``, and further files by path; always the same."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in {"index.py": source, **(files or {})}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return buffer.getvalue()


def ended(states, execution, seconds):
    """The description of an execution once it has ended; ``states`` is a Step Functions client."""

    def probe():
        state = states.describe_execution(executionArn=execution)
        return state["status"] != "RUNNING" and state

    return eventually(probe, seconds, f"{execution} still runs")


class Trainer:
    """Runs training jobs whose script is given as text."""

    def __init__(self, client):
        self.client = client
        with contextlib.suppress(client("s3").exceptions.BucketAlreadyOwnedByYou):
            client("s3").create_bucket(Bucket=BUCKET)

    def put(self, key, body):
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        return f"s3://{BUCKET}/{key}"

    def request(
        self, script, *, name=None, stage="quality", hyperparameters=None, files=None, **changes
    ):
        name = name or f"job-{uuid.uuid4().hex[:12]}"
        source = self.put(f"source/{name}.tar.gz", tarball({"train.py": script, **(files or {})}))
        request = {
            "TrainingJobName": name,
            "RoleArn": ROLE,
            "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
            "HyperParameters": {
                "sagemaker_program": '"train.py"',
                "sagemaker_submit_directory": json.dumps(source),
                "sagemaker_container_log_level": "40",  # the script's own lines, and errors
                **(hyperparameters or {}),
            },
            "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
            "ResourceConfig": {
                "InstanceType": "ml.m5.large",
                "InstanceCount": 1,
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 60},
            "Tags": [{"Key": "compilegate:stage", "Value": stage}],
        }
        return {**request, **changes}

    def start(self, script, **changes):
        request = self.request(script, **changes)
        self.client("sagemaker").create_training_job(**request)
        return request["TrainingJobName"]

    def describe(self, name):
        return self.client("sagemaker").describe_training_job(TrainingJobName=name)

    def wait(self, name, seconds=30):
        return self.wait_until(name, lambda job: job["TrainingJobStatus"] in TERMINAL, seconds)

    def wait_until(self, name, condition, seconds=30):
        def probe():
            job = self.describe(name)
            return condition(job) and job

        return eventually(probe, seconds, f"{name} is not as expected")

    def wait_until_training(self, name, seconds=15):
        """Also where the job does not exist yet."""

        def trains():
            jobs = jobs_named(self.client("sagemaker"), name)
            return jobs and self.describe(name)["SecondaryStatus"] == "Training"

        eventually(trains, seconds, f"{name} does not train")

    def wait_for_line(self, name, text, seconds=30):
        """The script itself runs some time after its job's status says Training."""
        self.wait_until(name, lambda _: text in self.lines_so_far(name), seconds)

    def lines_so_far(self, name):
        try:
            return self.log_lines(name)
        except (IndexError, self.client("logs").exceptions.ResourceNotFoundException):
            return []  # no log stream yet, or no log group

    def run(self, script, **changes):
        return self.wait(self.start(script, **changes))

    def read(self, uri):
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()

    def archive(self, uri):
        """Contents of a tar.gz in S3, by name."""
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(self.read(uri)))) as archive:
            return {
                member.name: archive.extractfile(member).read()
                for member in archive.getmembers()
                if member.isfile()
            }

    def output(self, name):
        return self.archive(f"s3://{BUCKET}/out/{name}/output/output.tar.gz")

    def log_lines(self, name):
        """What the job printed; the toolkit passes a lone line break on as a line."""
        group, logs = "/aws/sagemaker/TrainingJobs", self.client("logs")
        streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{name}/")
        stream = streams["logStreams"][0]["logStreamName"]
        events = logs.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)
        return [event["message"] for event in events["events"] if event["message"].strip()]


class Machines:
    """Runs state machines."""

    def __init__(self, client):
        self.client, self.role = client, ROLE

    def start(self, definition, data=None, name=None):
        states = self.client("stepfunctions")
        machine = states.create_state_machine(
            name=name or f"machine-{uuid.uuid4().hex[:10]}",
            definition=json.dumps(definition),
            roleArn=self.role,
        )["stateMachineArn"]
        document = json.dumps({} if data is None else data)
        return states.start_execution(stateMachineArn=machine, input=document)["executionArn"]

    def wait(self, execution, seconds=30):
        return ended(self.client("stepfunctions"), execution, seconds)

    def run(self, definition, data=None, seconds=30):
        began = time.monotonic()
        state = self.wait(self.start(definition, data), seconds)
        output = json.loads(state["output"]) if state.get("output") else None
        return {**state, "out": output, "seconds": time.monotonic() - began}

    def events(self, execution):
        return self.client("stepfunctions").get_execution_history(
            executionArn=execution, maxResults=1000
        )["events"]


def alive(pid):
    """Whether the process runs; one that ended but was not asked for counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"


def marked_processes(run_id):
    """Processes of one run of the local cloud: emulator, workers, supervisors, jobs."""
    marked = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if run_id.encode() in text and alive(int(entry.name)):
            marked.append(int(entry.name))
    return marked


def wait_for_none(run_id, seconds=8):
    """Wait until no process of the run is left; returns those that are."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = marked_processes(run_id)
        if not left:
            return []
        time.sleep(0.1)
    return left


def jobs_named(sagemaker, part, **filters):
    """Names of the jobs whose names contain a text, of every page."""
    pages = sagemaker.get_paginator("list_training_jobs").paginate(NameContains=part, **filters)
    return [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
