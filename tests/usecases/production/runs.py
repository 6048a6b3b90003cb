"""A registered workload on in-memory services, its executions, and what its jobs end with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from compilegate.domain import naming
from compilegate.domain.codec import write
from compilegate.domain.flag import Flag
from compilegate.domain.production.attempts import Attempt
from compilegate.domain.production.registration import Registration
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.workload.model import Workload
from compilegate.usecases.production.begin_run import begin_run, build_request
from compilegate.usecases.production.record_run import on_run_ended
from compilegate.usecases.records import to_json
from tests import fakes
from tests.archives import tarball
from tests.domain.workload_builder import SOUND
from tests.usecases.trial_builder import quality_output

NAME = SOUND.name
FLAG = naming.flag_parameter("prod", NAME)
ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z")
CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."
LIMIT = "SageMaker.ResourceLimitExceededException"
OUT_OF_MEMORY = "AlgorithmError: CUDA out of memory"


class Production:
    """One workload's production runs, step by step as the TRAIN machine makes them."""

    def __init__(self, workload: Workload = SOUND) -> None:
        self.services: Any = fakes.services("prod")
        self.register(workload)
        self.attempt = write(Attempt())
        self.run = ""
        self.execution = ""

    def register(self, workload: Workload, source: str = "s1", **more: Any) -> None:
        """What production trains from now on."""
        key = naming.spec_key(NAME, source)
        spec = {"workload": workload.to_dict(), "source_key": naming.source_key(NAME, source)}
        self.services.store.put(key, to_json(spec))
        registration = Registration(NAME, key, source, **more)
        self.services.store.put(naming.registration_key(NAME), to_json(write(registration)))

    def promote(self, flag: Flag = ON) -> None:
        """Turn the flag on: ledger and parameter."""
        text = flag.to_json()
        entry = {
            "kind": "flag", "at": 1, "version": 1, "change_id": "t", "by": "evaluate",
            "action": "enable", "reason": "r", "decision_id": "d1", "flag": FLAG,
            "from": Flag(False, "off").to_json(), "to": text, "overrode": None,
        }  # fmt: skip
        self.services.ledger.raw.put_once(NAME, FlagVersion.key_of(version=1), entry)
        self.services.flags.write(FLAG, text)

    def begin(self, day: int = 1, execution: str | None = None) -> dict[str, Any]:
        """BeginRun of the execution of one day."""
        execution = execution or f"arn:aws:states:us-east-1:1:execution:train:{day}"
        event = {
            "workload": NAME, "execution": execution, "started": "2026-11-01T00:00:00.123Z",
            "scheduled": f"2026-11-{day:02d}T02:00:00Z",
        }  # fmt: skip
        answer = begin_run(event, services=self.services)
        self.run, self.execution, self.attempt = answer["run"], execution, answer["attempt"]
        return answer

    def build(self) -> dict[str, Any]:
        """BuildRequest of the attempt that is next; the request as stored."""
        event = {"workload": NAME, "run": self.run, "attempt": self.attempt}
        answer = build_request(event, services=self.services)
        document: dict[str, Any] = json.loads(self.services.store.get(answer["request_key"]))
        return document

    @property
    def job(self) -> str:
        """Name of the attempt's job."""
        number = self.attempt["number"]
        return f"{naming.job_base(NAME, self.run, naming.attempt(number))}-r0"

    def ends(self, status: str, *, output: bytes | None = None, **described: Any) -> None:
        """The attempt's job ends so, two hours after it began."""
        self.describe(self.job, status, output=output, request=self.build(), **described)

    def describe(
        self, job: str, status: str, *, output: bytes | None, request: Mapping[str, Any],
        hours: float = 2.0, **described: Any,
    ) -> None:  # fmt: skip
        now = self.services.clock.now()
        self.services.jobs.descriptions[job] = {
            **request,
            "TrainingJobName": job,
            "TrainingJobStatus": status,
            "SecondaryStatus": status,
            "CreationTime": datetime.fromtimestamp(now, tz=UTC),
            "TrainingStartTime": datetime.fromtimestamp(now, tz=UTC),
            "TrainingEndTime": datetime.fromtimestamp(now + hours * 3600, tz=UTC),
            "BillableTimeInSeconds": round(hours * 3600),
            **described,
        }
        if output is not None:
            place = request["OutputDataConfig"]["S3OutputPath"]
            key = f"{place}/{job}/output/output.tar.gz".removeprefix("s3://data/")
            self.services.store.put(key, output)

    def record(self, error: str = "", cause: str = "", **more: Any) -> dict[str, Any]:
        """RecordRun of the attempt; the next one is as it answers."""
        event = {
            "workload": NAME, "run": self.run, "execution": self.execution, "job": self.job,
            "attempt": self.attempt, "error": error, "cause": cause, **more,
        }  # fmt: skip
        answer = on_run_ended(event, services=self.services)
        self.attempt = answer["attempt"]
        return answer

    def completes(self, **output: Any) -> dict[str, Any]:
        """The attempt's job completes and is recorded."""
        self.ends("Completed", output=quality_output(1, **output))
        return self.record()

    def fails(self, reason: str, **described: Any) -> dict[str, Any]:
        """The attempt's job fails and is recorded."""
        self.ends("Failed", FailureReason=reason, **described)
        return self.record("States.TaskFailed", "{}")

    def runs(self) -> list[ProductionRun]:
        """The runs as the ledger has them."""
        return list(self.services.ledger.history(NAME).runs)

    def entries(self, kind: str) -> list[Mapping[str, Any]]:
        """The ledger's entries of one kind."""
        return [e for e in self.services.ledger.raw.entries(NAME) if e["kind"] == kind]


def summary_tar(**changed: Any) -> bytes:
    """What a full run leaves, with other figures in its summary."""
    summary = {
        "schema": 1, "finished": True, "seed": 1, "metrics": {"eval_accuracy": 0.91},
        "wall_seconds": 60.0, "initial_loss": 3.0, "fingerprint": {"gpu": "g"},
        "compiler": {"requested": "torch_compile", "applied": True, "compile_seconds": 1.0},
        **changed,
    }  # fmt: skip
    return tarball({"evidence/summary.json": summary})
