"""What the weekly digest of ten thousand workloads takes: seconds, calls and memory.

Stores are in memory; every call sleeps as long as one over a network takes, and a ledger's entries
are parsed from text as DynamoDB returns them. One owner has all workloads, which makes the largest
message there can be.
"""

from __future__ import annotations

import json
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks import results
from compilegate.domain import naming
from compilegate.domain.claims import BYTES_MAX
from compilegate.domain.codec import write
from compilegate.domain.flag import Flag
from compilegate.domain.production.registration import Registration
from compilegate.domain.records.production import ProductionRun
from compilegate.ports import Ledger, Services
from compilegate.usecases.operations.weekly_summary import digests
from compilegate.usecases.registered import AT_ONCE
from tests.decision_builder import decision_document, saving
from tests.domain.workload_builder import SOUND
from tests.fakes import FixedClock, services

WORKLOADS = 10_000
# A year of three runs a week, every sixth of them a baseline's.
RUNS = 156
CALL_SECONDS = 0.02
# The function's own limit (stacks/functions.py), and what it has to spare on another machine.
LIMIT_SECONDS = 540
NOW, DAY, TRIAL = 1_790_000_000, 86_400, "0mabc123"
OWNER = "ml-platform"


class Remote:
    """Object store and ledger of workloads that are all alike, each call as slow as a network's."""

    bucket = "data"

    def __init__(self, workloads: int, runs: int, call_seconds: float) -> None:
        self._workloads, self._call_seconds = workloads, call_seconds
        self._texts = [json.dumps(entry) for entry in _entries(runs)]
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()

    def _call(self, name: str) -> None:
        time.sleep(self._call_seconds)
        with self._lock:
            self.calls[name] += 1

    def folders(self, prefix: str) -> Iterator[str]:  # noqa: ARG002 - the port's signature
        """Every workload, in pages of a thousand as S3 lists them."""
        for number in range(self._workloads):
            if number % 1000 == 0:
                self._call("list")
            yield f"w{number:05d}"

    def get(self, key: str) -> bytes:
        """A registration, a spec, or a decision."""
        self._call("get")
        name = key.split("/")[1]
        if key.endswith("registration.json"):
            registered = Registration(name, naming.spec_key(name, "d"), "d", owner=OWNER)
            return json.dumps(write(registered)).encode()
        if "/specs/" in key:
            document = {"workload": SOUND.to_dict(), "source_key": "s"}
            return json.dumps(document).encode()
        return json.dumps(decision_document(saving=saving(3.0))).encode()

    def entries(
        self,
        workload: str,  # noqa: ARG002 - the port's signature
        prefix: str = "",  # noqa: ARG002 - as above
    ) -> Sequence[Mapping[str, Any]]:
        """One workload's history."""
        self._call("query")
        return [json.loads(text) for text in self._texts]


def _entries(runs: int) -> list[dict[str, Any]]:
    on = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "t")
    promoted_at = NOW - 300 * DAY
    flag = {
        "kind": "flag", "at": promoted_at, "version": 1, "change_id": "c", "by": "evaluate",
        "action": "enable", "reason": "r", "decision_id": "d1", "overrode": None, "trial": TRIAL,
        "from": Flag(False, "off").to_json(), "to": on.to_json(),
    }  # fmt: skip
    return [flag, *(_run(number) for number in range(RUNS - runs, RUNS))]


def _run(number: int) -> dict[str, Any]:
    at = NOW - (RUNS - number) * 7 * DAY / 3
    compiled = number % 6 != 0
    run = ProductionRun(
        run=naming.trial_id(int(at * 1000)), job=f"cg-w-{number}-p0", started_at=at - 3600,
        ended_at=at, arm="compile" if compiled else "baseline", counts=True, why="flag",
        usd=7.0 if compiled else 10.0, billable_seconds=3600.0,
        result={
            "finished": True, "applied": True, "metric": 0.91, "wall_seconds": 3600.0, "seed": 17,
            "fingerprint": {"gpu": "NVIDIA A10G", "torch": "2.8.0", "code_sha256": "0" * 64},
        },
    )  # fmt: skip
    return replace(run, at=int(at)).to_entry()


def measure(workloads: int, runs: int = RUNS, call_seconds: float = CALL_SECONDS) -> dict[str, Any]:
    """One digest of so many workloads that have so many runs each."""
    remote: Any = Remote(workloads, runs, call_seconds)
    cloud: Services = replace(
        services("prod"), store=remote, ledger=Ledger(remote), clock=FixedClock(NOW)
    )
    began, cpu = time.perf_counter(), time.process_time()
    (digest,) = digests(cloud)
    envelope = digest.notification.envelope()
    if len(envelope.encode()) > BYTES_MAX:
        raise AssertionError("the message does not fit")
    return {
        "workloads": workloads,
        "runs_each": runs,
        "call_ms": 1000 * call_seconds,
        "threads": AT_ONCE,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "limit_seconds": LIMIT_SECONDS,
        "calls": dict(remote.calls),
        "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "message_bytes": len(envelope.encode()),
    }


if __name__ == "__main__":
    results.keep("digests", lambda: measure(WORKLOADS))
