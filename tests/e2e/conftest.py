"""The deployed app on one embedded cloud, and trials of a stand-in training script in it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compilegate.adapters.sagemaker import SageMakerJobs
from compilegate.adapters.stores import DynamoDbTable, S3Store
from compilegate.adapters.workload_files import make_bundle
from compilegate.domain import naming
from compilegate.domain.workload.file import parse_workload
from compilegate.ports import Ledger
from compilegate.usecases.records import Trial
from compilegate.usecases.registration import Package, submit
from compilegate.usecases.started_jobs import requested_runs
from compilegate_localcloud import api
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY, Places
from distributions.localcloud.tests.helpers import ended, eventually
from tests.stacks import calls

JOB = Path(__file__).parent / "job"
COMPILE_CANDIDATE = {"name": "compile", "compiler": "torch_compile"}
# Set, the calls of whatever is run are added to what tests/stacks knows of them.
RECORD = "COMPILEGATE_RECORD_CALLS"
FAST = ("--stop-grace-seconds", "0.3", "--checkpoint-seconds", "5", "--slots", "8")


@dataclass
class Running:
    """One trial in the cloud."""

    app: App
    workload: str
    trial: str
    execution: str

    def wait(self, seconds: float = 150.0) -> dict[str, Any]:
        """The execution once it has ended."""
        return ended(self.app.client("stepfunctions"), self.execution, seconds)

    def output(self, seconds: float = 150.0) -> dict[str, Any]:
        """The output of an execution that succeeds."""
        execution = self.wait(seconds)
        assert "SUCCEEDED" == execution["status"], execution.get("cause")
        output: dict[str, Any] = json.loads(execution["output"])
        return output

    def decision(self, seconds: float = 150.0) -> dict[str, Any]:
        """The decision of a trial that succeeds, with nothing left behind."""
        self.output(seconds)
        assert "InProgress" not in self.jobs().values()
        assert self.lock() is None
        return self.record("decision")

    def record(self, document: str) -> dict[str, Any]:
        """A kept document of the trial."""
        key = naming.record_key(self.workload, self.trial, document)
        document: dict[str, Any] = json.loads(self.app.store.get(key))
        return document

    def entries(self) -> dict[str, Mapping[str, Any]]:
        """The trial's ledger entries by kind."""
        return {
            entry["kind"]: entry
            for entry in self.app.ledger.raw.entries(self.workload)
            if entry.get("trial", self.trial) == self.trial
        }

    def jobs(self) -> dict[str, str]:
        """Status of every job of the trial, of up to three tries, by run id and try."""
        trial = Trial(self.workload, self.trial, "")
        runs = requested_runs(trial, self.app.store)
        names = [name for run in runs for name in naming.tries(self.job(run.text), 2)]
        described = SageMakerJobs(self.app.client("sagemaker")).describe_all(names)
        prefix = naming.trial_job_prefix(self.workload, self.trial)
        return {
            name.removeprefix(prefix): one["TrainingJobStatus"] for name, one in described.items()
        }

    def request(self, run: str) -> dict[str, Any]:
        """The request of a run as the state machine sent it."""
        key = naming.request_key(self.workload, self.trial, run)
        document: dict[str, Any] = json.loads(self.app.store.get(key))
        return document

    def report(self, extension: str) -> str:
        """The trial's report in one of its formats."""
        key = naming.report_key(self.workload, self.trial, extension)
        return self.app.store.get(key).decode()

    def job(self, run: str) -> str:
        """The full name of a job from its run id and retry."""
        return naming.trial_job_prefix(self.workload, self.trial) + run

    def wait_for_full_run(self, arm_index: int, seconds: float = 120.0) -> str:
        """The full name of the job of an arm's full run once its script trains."""
        sagemaker = self.app.client("sagemaker")

        def training() -> str | None:
            for job in map(self.job, self.jobs()):
                run = naming.job_run(self.workload, self.trial, job)
                status = sagemaker.describe_training_job(TrainingJobName=job)["SecondaryStatus"]
                if run and run.arm_index == arm_index and status == "Training":
                    return job
            return None

        return str(eventually(training, seconds, f"no full run of arm {arm_index} trains"))

    def flag(self) -> dict[str, Any] | None:
        """The workload's flag, None when absent."""
        ssm = self.app.client("ssm")
        name = naming.flag_parameter("local", self.workload)
        try:
            value: dict[str, Any] = json.loads(ssm.get_parameter(Name=name)["Parameter"]["Value"])
        except ssm.exceptions.ParameterNotFound:
            return None
        return value

    def lock(self) -> dict[str, Any] | None:
        """The lock in the ledger table, None when free."""
        answer: dict[str, Any] = self.app.client("dynamodb").get_item(
            TableName=self.app.outputs["LedgerTable"],
            Key={"pk": {"S": f"lock#{self.workload}"}, "sk": {"S": "lock"}},
        )
        return answer.get("Item")

    def wait_until_released(self, seconds: float = 20.0) -> None:
        """Until the lock is free: after an abort the event comes a moment later."""
        eventually(lambda: self.lock() is None, seconds, "the lock was left behind")


class App:
    """The deployed stack."""

    def __init__(self, cloud: LocalCloud, outputs: Mapping[str, str]) -> None:
        self.cloud = cloud
        self.outputs = outputs
        self.client = cloud.running_state().client
        self.store = S3Store(self.client("s3"), outputs["DataBucket"])
        self.ledger = Ledger(DynamoDbTable(self.client("dynamodb"), outputs["LedgerTable"]))
        self._count = 0

    def start(self, document: dict[str, Any], machine: str | None = None) -> Running:
        """Submit a workload and start its execution; ``machine`` is EVALUATE's ARN, or another."""
        self._count += 1
        workload = parse_workload(document)
        bundle = make_bundle(JOB)
        package = Package(workload, bundle.body, bundle.digest, {})
        trial_id = naming.trial_id(int(time.time() * 1000) + self._count)
        trial = submit(package, trial=trial_id, store=self.store)
        execution = self.client("stepfunctions").start_execution(
            stateMachineArn=machine or self.outputs["EvaluateStateMachine"],
            name=naming.execution_name(workload.name, trial_id),
            input=json.dumps(
                {"workload": workload.name, "trial": trial_id, "spec_key": trial.spec_key}
            ),
        )["executionArn"]
        return Running(self, workload.name, trial_id, execution)


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """With permissions enforced and at AWS's published rates: what is run here needs no more."""
    home = tmp_path_factory.mktemp("cloud")
    with deployed(home, "--hold-rates", enforce_iam=True) as deployed_app:
        yield deployed_app


@pytest.fixture(scope="session")
def app_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Of the files that drain it, deploy another release and destroy it, in this order."""
    with deployed(tmp_path_factory.mktemp("own")) as deployed_app:
        yield deployed_app


@contextmanager
def deployed(home: Path, *arguments: str, enforce_iam: bool = False) -> Iterator[App]:
    """The app on an embedded cloud of its own; ``arguments`` are further ones for the emulator."""
    places = Places(
        repository=REPOSITORY,
        home=home,
        emulator_python=REPOSITORY / ".venv-localcloud" / "bin" / "python",
        training_python=Path(sys.executable),
    )
    with LocalCloud(places=places) as cloud:
        cloud.start(
            attached=True,
            enforce_iam=enforce_iam,
            inject_failures=True,
            extra_arguments=(*FAST, *arguments),
        )
        up = api.up(cloud=cloud)
        yield App(cloud, up.outputs)
        if RECORD in os.environ:
            calls.record(cloud, home / "logs" / "permissions.jsonl")


def stand_in(
    name: str, *, hyperparameters: Mapping[str, Any] | None = None, **sections: Any,
) -> dict[str, Any]:  # fmt: skip
    """The workload file of the stand-in script; ``sections`` replace or add to the document's."""
    return {
        "schema": 1,
        "name": name,
        "framework": {"name": "pytorch", "version": "2.13.0"},
        "model": {"family": "transformer", "name": "stand-in"},
        "training": {
            "source_dir": "job", "entry_point": "train.py",
            "instance_type": "ml.g5.xlarge", "instance_count": 1, "distribution": "none",
            "precision": "bf16", "batch_size": 32, "learning_rate": 1e-3,
            "max_runtime_hours": 1,
            "hyperparameters": {
                "speedup": 1.5, "loss_shift": 0.0, "noise": 0.002, **(hyperparameters or {}),
            },
        },
        "shapes": {"static": True},
        "schedule": {"runs_per_week": 1000, "run_hours": 0.5},
        "quality": {"metric": "eval_loss", "goal": "minimize", "margin": 0.05},
        **sections,
    }  # fmt: skip


def trial_document(
    name: str, *, candidates: Sequence[dict[str, Any]] = (COMPILE_CANDIDATE,),
    policy: dict[str, Any] | None = None, facts: dict[str, Any] | None = None,
    **hyperparameters: Any,
) -> dict[str, Any]:  # fmt: skip
    """The workload file of a trial whose full runs are its own."""
    return stand_in(
        name, hyperparameters=hyperparameters, facts=facts or {}, candidates=list(candidates),
        policy={"quality_runs": "shadow", **(policy or {})},
    )  # fmt: skip


@pytest.fixture
def trial(app: App, request: pytest.FixtureRequest) -> Callable[..., Running]:
    """Starts a trial of the stand-in script under a name of its own."""
    count = 0

    def start(*, name: str | None = None, **settings: Any) -> Running:
        nonlocal count
        count += 1
        words = request.node.name.replace("test_", "").replace("_", "-")[:20].strip("-")
        name = name or f"{words}-{os.getpid() % 1000}-{count}"
        return app.start(trial_document(name, **settings))

    return start
