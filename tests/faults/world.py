"""A cloud in memory that can be copied at any moment: services, jobs, people, and what has ended.

Every call of a function on a service passes ``World.calls``, where a fault may be put into it. The
jobs leave the evidence that a real candidate of known speed and quality would leave.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch

from compilegate.adapters import job_outputs, wiring
from compilegate.domain import naming
from compilegate.domain.job_output import JobOutput
from compilegate.domain.production.orphans import ExecutionEnd
from compilegate.ports import Services
from compilegate.usecases import records
from lambdas import handlers
from tests import fakes
from tests.faults.jobs import NAME, Candidate, Job, job_of, output_of

Document = dict[str, Any]
Saved = tuple[bytes, dict[str, bytes]]
STAGE = "prod"
SPEC_KEY = f"workloads/{NAME}/specs/1.json"
FLAG = naming.flag_parameter(STAGE, NAME)
ARN = "arn:aws:{}:us-east-1:111122223333:{}"
JOB_SECONDS = 2 * 3600
PORTS = ("store", "ledger", "locks", "flags", "jobs", "outputs", "tokens", "ends")
# After these the world is another one; all other calls only read.
WRITES = frozenset({
    "store.put", "ledger.put_once", "ledger.append", "locks.acquire", "locks.extend",
    "locks.release", "flags.write", "jobs.stop", "jobs.tag", "tokens.send_success", "topic.publish",
})  # fmt: skip


def execution_arn(machine: str, name: str) -> str:
    """ARN of an execution of ``evaluate`` or ``train``."""
    return ARN.format("states", f"execution:{naming.machine_name(STAGE, machine)}:{name}")


@dataclass(frozen=True)
class Truth:
    """What the candidate really is: times as fast, and what its metric loses."""

    speedup: float = 1.4
    loss: float = 0.0

    @property
    def deserves(self) -> bool:
        """Whether a promotion is right: the policy's least speed-up, within the margin."""
        return self.speedup >= 1.1 and self.loss < 0.005


class World:
    """``calls`` sees (name, call) of each call on a service and makes it; it may fail instead."""

    def __init__(self, workload: Document, truth: Truth) -> None:
        self.workload, self.truth = workload, truth
        self.services: Any = fakes.services(STAGE)
        # One job at a time, so that an execution is the same each time.
        self.services.quotas.otherwise = workload["training"]["instance_count"]
        self.topic = fakes.MemoryTopic()
        self.messages: list[Document] = []
        self.ended: dict[str, Document] = {}
        self.trains: list[Document] = []  # ends of the next jobs, instead of completing
        self.jobs_started = self.tokens = 0
        self.lists = False  # whether a function has listed the account's jobs
        self.put(SPEC_KEY, {"workload": workload, "source_key": f"workloads/{NAME}/s.tgz"})
        self.register()

    def register(self, **changes: Any) -> None:
        """What production trains; ``changes`` to it."""
        document = {
            "schema": 1, "workload": NAME, "spec_key": SPEC_KEY, "source_digest": "d",
            "schedule": None, "active": True, **changes,
        }  # fmt: skip
        self.put(naming.registration_key(NAME), document)

    def copy(self) -> Self:
        """The same world; what happens in one does not happen in the other."""
        return type(self).__new__(type(self)).become(self.saved())

    def saved(self) -> Saved:
        """All that is in it: what lies in the store is never changed, only replaced."""
        return self._pickled(), self.services.store.objects.copy()

    def digest(self) -> tuple[bytes, int]:
        """The same for worlds that hold the same."""
        objects = frozenset(self.services.store.objects.items())
        return hashlib.sha256(self._pickled(fast=True)).digest(), hash(objects)

    def _pickled(self, *, fast: bool = False) -> bytes:
        """All but what lies in the store; ``fast`` tells equal from same."""
        store, pickled = self.services.store, io.BytesIO()
        objects, store.objects = store.objects, {}
        # A quarter of the time of copy.deepcopy, which goes through each value in Python.
        pickler = pickle.Pickler(pickled, pickle.HIGHEST_PROTOCOL)
        pickler.fast = fast
        pickler.dump(vars(self))
        store.objects = objects
        return pickled.getvalue()

    def become(self, saved: Saved) -> Self:
        """From now on it is as the one that was saved."""
        vars(self).update(pickle.loads(saved[0]))
        self.services.store.objects = saved[1].copy()
        return self

    def put(self, key: str, document: Document) -> None:
        self.services.store.put(key, json.dumps(document).encode())

    def get(self, key: str) -> Any:
        return json.loads(self.services.store.get(key))

    @property
    def now(self) -> int:
        return int(self.services.clock.seconds)

    def token(self) -> str:
        """Another one each time."""
        self.tokens += 1
        return f"token-{self.tokens}"

    def passes(self, seconds: float) -> None:
        self.services.clock.seconds += int(seconds)

    # Functions

    def step(self, name: str, event: Document, calls: Calls | None = None) -> Document:
        """A function's answer; raises what it raises."""
        calls = calls or Calls()
        services, topic = watched(self, calls)
        with (
            patch.object(wiring, "services", lambda *_: services),
            patch.object(wiring, "topic", lambda *_: topic),
            patch.object(wiring, "training_logs", lambda *_: fakes.NoLogs()),
        ):
            answer = getattr(handlers, name)(json.loads(json.dumps(event, default=str)), None)
        self.lists = self.lists or "jobs.unfinished" in calls.seen
        made: Document = json.loads(json.dumps(answer))
        return made

    def end(self, execution: str, status: str, given: Document, **why: str) -> Document:
        """The execution has ended; returns the detail of the event that says so."""
        detail = {
            "executionArn": execution, "status": status, "input": json.dumps(given), **why,
        }  # fmt: skip
        self.ended[execution] = detail
        self.services.ends[execution] = ExecutionEnd(status, self.now, detail)
        return detail

    # Jobs

    def create(self, request: Document) -> None:
        """CreateTrainingJob: the job is in progress."""
        name, jobs = str(request["TrainingJobName"]), self.services.jobs.descriptions
        now = datetime.fromtimestamp(self.now, tz=UTC)
        jobs[name] = {
            **request, "TrainingJobStatus": "InProgress", "SecondaryStatus": "Training",
            "TrainingJobArn": ARN.format("sagemaker", f"training-job/{name}"),
            "CreationTime": now, "TrainingStartTime": now,
        }  # fmt: skip

    def finish(self, name: str) -> Document:
        """The job ends as it was to, unless it was stopped before."""
        described = self.services.jobs.descriptions[name]
        if described["TrainingJobStatus"] == "InProgress":
            job, self.jobs_started = job_of(described, self.jobs_started), self.jobs_started + 1
            changes = self.trains.pop(0) if self.trains else {}
            self.passes(JOB_SECONDS)
            described.update(
                TrainingJobStatus="Completed", SecondaryStatus="Completed",
                TrainingEndTime=datetime.fromtimestamp(self.now, tz=UTC),
                BillableTimeInSeconds=JOB_SECONDS,
            )  # fmt: skip
            described.update(changes)
            if described["TrainingJobStatus"] == "Completed":
                self._leave_output(described, job)
        return dict(described)

    def _leave_output(self, described: Document, job: Job) -> None:
        quality = self.workload["quality"]
        real = Candidate(self.truth.speedup, self.truth.loss, quality["metric"], quality["goal"])
        place = described["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://data/")
        key = f"{place}/{described['TrainingJobName']}/output/output.tar.gz"
        self.services.store.put(key, _output(job, real))


def install() -> None:
    """Let functions read what they read in one thread, and equal outputs of jobs once."""
    read_output = job_outputs.read_output

    @cache
    def read(body: bytes) -> JobOutput:
        return read_output(io.BytesIO(body), len(body))

    job_outputs.read_output = lambda stream, _size: read(stream.read())
    # Threads would ask for the workloads in another order each time.
    inline = nullcontext(SimpleNamespace(map=map))
    records.ThreadPoolExecutor = lambda _: inline  # type: ignore[assignment,misc]


@cache
def _output(job: Job, candidate: Candidate) -> bytes:
    """Thousands of worlds have jobs that leave the same."""
    return output_of(job, candidate)


class Dead(BaseException):
    """The function's process is gone: no ``except Exception`` sees it."""


@dataclass
class Calls:
    """Counts the calls of functions; ``hook`` sees each before and after it was made.

    ``hook(name, number, when)`` with when ``before`` or ``after`` may raise.
    """

    hook: Callable[[str, int, str], None] | None = None
    seen: list[str] = field(default_factory=list)

    def make(self, name: str, call: Callable[[], Any]) -> Any:
        number = len(self.seen)
        self.seen.append(name)
        if self.hook is not None:
            self.hook(name, number, "before")
        answer = call()
        if self.hook is not None:
            self.hook(name, number, "after")
        return answer


class Watched:
    """A service whose calls pass ``calls``."""

    def __init__(self, name: str, service: Any, calls: Calls) -> None:
        self._name, self._service, self._calls = name, service, calls

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._service, attribute)
        if not callable(value):
            return value

        def made(*arguments: Any, **named: Any) -> Any:
            name = f"{self._name}.{attribute}"
            return self._calls.make(name, lambda: value(*arguments, **named))

        return made


def watched(world: World, calls: Calls) -> tuple[Services, Any]:
    """The world's services and topic, their calls passing ``calls``."""
    ports = {name: Watched(name, getattr(world.services, name), calls) for name in PORTS}
    return replace(world.services, **ports), Watched("topic", world.topic, calls)
