"""Measures each of them in a process of its own and keeps the figures (``fleet.json``).

``python -m benchmarks.fleet`` measures all, ``python -m benchmarks.fleet sweep 1000 3`` one and
prints it.
"""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from typer.testing import CliRunner

from benchmarks import results
from benchmarks.fleet.cloud import Client
from compilegate.cli.common.session import Session
from compilegate.cli.main import app
from compilegate.ports import Services
from compilegate.usecases.operations.sweep import daily
from compilegate.usecases.operations.weekly_digest import digests
from compilegate.usecases.records import AT_ONCE
from tests.fake_clouds import FakeProviders, cloud
from tests.fakes import MemoryTopic, NoLogs

SIZES, YEARS, CALL_SECONDS = (100, 1000, 10_000), (1, 3), 0.02


def command(*words: str) -> Callable[[Services], Any]:
    """A command as a user calls it."""

    def run(services: Services) -> Any:
        stage = replace(cloud("prod"), services=services)
        answer = CliRunner().invoke(app, [*words], obj=Session(FakeProviders(stage)))
        if answer.exit_code:
            raise AssertionError(answer.output) from answer.exception
        return len(answer.stdout.splitlines())

    return run


MEASURED: dict[str, Callable[[Services], Any]] = {
    "sweep": lambda services: daily(
        {}, services=services, topic=MemoryTopic(), training_logs=NoLogs()
    ),
    "digest": lambda services: len(digests(services)),
    "list": command("list"),
    "status": command("status"),
    "statement": command("statement", "--month", "2026-09", "--json"),
}


def measure(
    name: str, workloads: int, years: int, call_seconds: float = CALL_SECONDS
) -> dict[str, Any]:
    """Seconds, CPU, requests by kind, bytes and memory (MiB, with and without the start)."""
    client = Client(workloads, years, call_seconds)
    services = client.cloud()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began, cpu = time.perf_counter(), time.process_time()
    answer = MEASURED[name](services)
    calls = dict(client.calls)
    return {
        "what": name, "workloads": workloads, "years": years,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "read_mb": round(calls.pop("bytes", 0) / 1e6, 1),
        "requests": calls,
        "memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "memory_before_mib": round(before),
        "answer": answer,
    }  # fmt: skip


def measure_all() -> dict[str, Any]:
    """All of them, one after the other."""
    rows = []
    for workloads in SIZES:
        for years in YEARS:
            for name in MEASURED:
                words = [sys.executable, "-m", "benchmarks.fleet", name, str(workloads), str(years)]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                rows.append(json.loads(done.stdout))
    # What release 0.2.0 took was measured once, by this with its adapters.
    before = json.loads(results.path("fleet").read_text())["before"]
    return {"call_ms": 1000 * CALL_SECONDS, "threads": AT_ONCE, "measured": rows, "before": before}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        logging.disable(logging.CRITICAL)
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        results.keep("fleet", measure_all)
