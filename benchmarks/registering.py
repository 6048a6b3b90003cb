"""What registering many workloads costs: seconds, calls and memory, against stores in memory.

Three passes over the same files: all new, none changed, one field of each changed. Every call
sleeps as long as one over a network takes, so that seconds say something about a real account;
calls per workload do not depend on that. The reference is reading and checking the files alone,
which `compilegate check` does too: the ratio of CPU seconds to it says more than seconds, which
are this machine's.
"""

from __future__ import annotations

import copy
import resource
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import yaml

from benchmarks import results
from benchmarks.checks import SHIPPED, documents
from compilegate.adapters.workload_files import WorkloadFile
from compilegate.adapters.yaml_document import load_yaml
from compilegate.cli.check import find_files, read_files
from compilegate.cli.common.cloud import Cloud, Production
from compilegate.cli.register import WORKERS, register_files
from compilegate.domain.errors import NotFoundError
from compilegate.domain.naming import RUNTIME_PACKAGE
from compilegate.ports import Ledger, Services, Settings
from compilegate.usecases.registration import RegisterOptions

WORKLOADS = 10_000
# A call of S3, DynamoDB or Scheduler from the same region.
CALL_SECONDS = 0.02
SOURCE_FOLDERS = 20
OPTIONS = RegisterOptions(by="human:benchmark")
Result = TypeVar("Result")
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Remote:
    """Object store, ledger, schedules and clock in memory, each call as slow as a network's."""

    bucket = "data"
    target = "train as scheduler"

    def __init__(self, call_seconds: float) -> None:
        self._objects: dict[str, bytes] = {}
        self._entries: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._call_seconds = call_seconds
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()

    def _call(self, name: str) -> None:
        time.sleep(self._call_seconds)
        with self._lock:
            self.calls[name] += 1

    def get(self, key: str) -> bytes:
        """GetObject."""
        self._call("get")
        if key not in self._objects:
            raise NotFoundError(key)
        return self._objects[key]

    def put(self, key: str, body: object, kind: str = "") -> None:  # noqa: ARG002
        """PutObject, or with an expression CreateSchedule."""
        self._call("put" if isinstance(body, bytes) else "schedule")
        if isinstance(body, bytes):
            # Bundles are counted once: a bucket would hold them, not this process.
            self._objects[key] = b"" if key.endswith(".tar.gz") else body

    def put_stream(self, key: str, stream: BinaryIO, content_type: str) -> None:
        """PutObject."""
        self.put(key, stream.read(), content_type)

    def has(self, key: str) -> bool:
        """HeadObject."""
        self._call("head")
        return key in self._objects

    def exists(self, uri: str) -> bool:  # noqa: ARG002
        """ListObjectsV2; every input is there."""
        self._call("list")
        return True

    def remove(self, workload: str) -> None:  # noqa: ARG002
        """DeleteSchedule."""
        self._call("schedule")

    def put_once(self, workload: str, sort_key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """PutItem on a condition."""
        self._call("ledger")
        return self._entries.setdefault((workload, sort_key), entry)

    def entries(self, workload: str, prefix: str = "") -> Sequence[Mapping[str, Any]]:  # noqa: ARG002
        """Query."""
        self._call("ledger")
        revisions = (f"registered#{revision:08d}" for revision in range(1, 4))
        entries = (self._entries.get((workload, key)) for key in revisions)
        return [entry for entry in entries if entry is not None]

    def now(self) -> int:
        """The time."""
        return int(time.time())

    def cloud(self) -> Cloud:
        """A cloud of this alone."""
        me: Any = self
        services = Services(
            store=me, ledger=Ledger(me), fleet=me, locks=me, flags=me, jobs=me, outputs=me,
            roles=me, quotas=me, tokens=me, ends=me, clock=me,
            settings=Settings("dev", "us-east-1", "arn:aws:iam::111122223333:role/dev-"),
        )  # fmt: skip
        return Cloud(services, me, me, 0.0, Production(me, me))


def measure(count: int = WORKLOADS, call_seconds: float = CALL_SECONDS) -> dict[str, Any]:
    """Seconds, calls per workload and peak memory of each pass, and the reference."""
    remote = Remote(call_seconds)
    passes: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), count)
        before = _peak_mib()
        files, reading = _timed(lambda: _read(Path(folder)))
        for name in ("new", "unchanged", "updated"):
            if name == "updated":
                write(Path(folder), count, learning_rate=3e-5)
                files = _read(Path(folder))
            remote.calls.clear()
            counted, spent = _timed(lambda read=files: _register(read, remote))
            if counted != {name: count}:
                raise RuntimeError(f"{name}: {dict(counted)}")
            passes[name] = {
                **spent,
                "times_reading_cpu": round(spent["cpu_seconds"] / reading["cpu_seconds"], 2),
                "calls_per_workload": {
                    kind: round(calls / count, 2) for kind, calls in sorted(remote.calls.items())
                },
            }
        memory = round(_peak_mib() - before)
    return {
        "workloads": count,
        "call_seconds": call_seconds,
        "at_once": WORKERS,
        "reading": reading,
        **passes,
        "peak_mib_above_start": memory,
    }


def _register(files: Sequence[WorkloadFile], remote: Remote) -> Counter[str]:
    """How many were new, changed or unchanged; raises the first error."""
    counted: Counter[str] = Counter()
    for result in register_files(files, remote.cloud(), OPTIONS):
        if result.error is not None:
            raise result.error
        counted[result.what] += 1
    return counted


def _timed(act: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The result with wall clock and CPU seconds of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = act()
    spent = {
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }
    return result, spent


def write(folder: Path, count: int, **training: Any) -> None:
    """Workload files in the projects of several teams; their data lies in S3."""
    projects = [folder / f"team-{index}" for index in range(SOURCE_FOLDERS)]
    for project in projects:
        # A recorder of its own: this checkout's may change while this runs.
        runtime = project / "training" / RUNTIME_PACKAGE
        runtime.mkdir(parents=True, exist_ok=True)
        (runtime / "__init__.py").touch()
        (project / "workloads").mkdir(exist_ok=True)
    # On their own machines: not every framework trains on every one.
    machines = cycle(load_yaml(path) for path in sorted(SHIPPED.glob("*.yaml")))
    for project, document, own in zip(cycle(projects), documents(count), machines, strict=False):
        changed = cast("dict[str, Any]", copy.deepcopy(document))
        instance = cast("Mapping[str, Any]", own)["training"]["instance_type"]
        changed["training"] |= {
            "instance_type": instance,
            "source_dir": "training",
            "inputs": {"train": f"s3://corpus/{changed['name']}/"},
            **training,
        }
        changed["schedule"]["cron"] = "cron(0 3 * * ? *)"
        for entry in _entry_points(changed):
            (project / "training" / entry).write_text(f"print({project.name!r})\n")
        file = project / "workloads" / f"{changed['name']}.yaml"
        file.write_text(yaml.dump(changed, Dumper=DUMPER, sort_keys=False))


def _entry_points(document: Mapping[str, Any]) -> set[str]:
    every = [document["training"], *document.get("candidates", [])]
    return {str(one["entry_point"]) for one in every if "entry_point" in one} | {
        str(one["hyperparameters"]["script"])
        for one in every
        if "script" in one.get("hyperparameters", {})
    }


def _read(folder: Path) -> list[WorkloadFile]:
    files = []
    for _, read in read_files(find_files([folder])):
        if not isinstance(read, WorkloadFile):
            raise read
        files.append(read)
    return files


def _peak_mib() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    results.keep("registering", measure)
