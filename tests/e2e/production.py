"""Production runs of the stand-in training script in the deployed app."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.adapters.workload_files import make_bundle
from compilegate.domain import naming
from compilegate.domain.codec import write
from compilegate.domain.flag import Flag
from compilegate.domain.production.registration import Registration
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.file import parse_workload
from compilegate.usecases.records import to_json
from compilegate.usecases.registration import Package, submit
from distributions.localcloud.tests.helpers import ended, eventually
from tests.e2e.conftest import JOB, App, Running, stand_in

COMPILE = Flag(
    enabled=True, state="probation", candidate="compile",
    overrides={"compiler": "torch_compile"}, decision_id="d1", since="2026-01-01T00:00:00Z",
)  # fmt: skip


@dataclass
class Production:
    """One registered workload; ``knobs`` are the stand-in script's hyperparameters."""

    app: App
    name: str
    knobs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        workload = parse_workload(self.document())
        bundle = make_bundle(JOB)
        package = Package(workload, bundle.body, bundle.digest, {})
        self.spec_key = submit(package, trial="", store=self.app.store).spec_key
        registration = Registration(self.name, self.spec_key, bundle.digest)
        self.app.store.put(naming.registration_key(self.name), to_json(write(registration)))

    def document(self) -> dict[str, Any]:
        """The workload file."""
        return stand_in(self.name, hyperparameters=self.knobs)

    def set_flag(self, text: str) -> None:
        """Write the parameter as it would be by hand."""
        self.app.client("ssm").put_parameter(
            Name=naming.flag_parameter("local", self.name), Value=text, Type="String",
            Overwrite=True,
        )  # fmt: skip

    def promote(self, flag: Flag = COMPILE, **more: Any) -> None:
        """Turn the flag on as a trial does: ledger and parameter."""
        text = flag.to_json()
        entry = {
            "kind": "flag", "at": int(time.time()), "version": 1, "change_id": "trial#t#flag",
            "by": "evaluate", "action": "enable", "reason": "proven", "decision_id": "d1",
            "flag": naming.flag_parameter("local", self.name), "from": Flag(False, "off").to_json(),
            "to": text, "overrode": None, **more,
        }  # fmt: skip
        self.app.ledger.raw.put_once(self.name, FlagVersion.key_of(version=1), entry)
        self.set_flag(text)

    def start(self, **more: Any) -> str:
        """Start an execution of TRAIN; returns its ARN."""
        started: dict[str, Any] = self.app.client("stepfunctions").start_execution(
            stateMachineArn=self.app.outputs["TrainStateMachine"],
            input=json.dumps({"workload": self.name, **more}),
        )
        return str(started["executionArn"])

    def run(self, **more: Any) -> dict[str, Any]:
        """One execution to its end."""
        return self.wait(self.start(**more))

    def succeed(self, **more: Any) -> dict[str, Any]:
        """The output of one execution that succeeds."""
        execution = self.run(**more)
        assert "SUCCEEDED" == execution["status"], execution.get("cause")
        output: dict[str, Any] = execution["output"]
        return output

    def wait(self, execution: str, seconds: float = 120.0) -> dict[str, Any]:
        """The execution once it has ended; its output parsed."""
        state = ended(self.app.client("stepfunctions"), execution, seconds)
        return {**state, "output": json.loads(state.get("output") or "{}")}

    def entries(self, kind: str) -> list[Mapping[str, Any]]:
        """The ledger's entries of one kind."""
        return [e for e in self.app.ledger.raw.entries(self.name) if e["kind"] == kind]

    def runs(self) -> list[ProductionRun]:
        """The runs as the ledger has them, in the order of time."""
        return list(self.app.ledger.history(self.name).runs)

    def wait_for_runs(self, count: int, seconds: float = 30.0) -> list[ProductionRun]:
        """The runs once there are so many."""
        eventually(lambda: len(self.runs()) >= count, seconds, f"fewer than {count} runs recorded")
        return self.runs()

    def hyperparameters(self, job: str) -> dict[str, Any]:
        """What a job was asked to train."""
        described = self.app.client("sagemaker").describe_training_job(TrainingJobName=job)
        return {key: json.loads(value) for key, value in described["HyperParameters"].items()}


@dataclass
class Promoted(Production):
    """What a trial has turned on, registered as that trial had it."""

    running: Running | None = None

    def __post_init__(self) -> None:
        self.spec_key = self.running.record("plan")["spec_key"]
        registration = Registration(self.name, self.spec_key, "x")
        self.app.store.put(naming.registration_key(self.name), to_json(write(registration)))

    def flag(self) -> dict:
        return self.running.flag()
