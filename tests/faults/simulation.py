"""``python -m tests.faults.simulation``: plays schedules on all cores (``make simulate``).

``SCHEDULES`` of them (default 100,000) from ``SEED`` on (default 1). What fails is shrunk and kept
in ``schedules``, where the tests play it from then on.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.campaign import ENVIRONMENT, PYTHON, REPOSITORY, definitions
from tests.faults.jobs import WORKLOAD

KEPT = Path(__file__).parent / "schedules"
NOMINAL = 0.05  # of the intervals may miss the true speed-up
EVERY_SECONDS = 10.0
Document = dict[str, Any]


@dataclass
class Summary:
    """What was played so far."""

    schedules: int = 0
    acts: int = 0
    faults: int = 0
    intervals: int = 0
    missed: int = 0
    failed: list[Document] = field(default_factory=list)
    ends: dict[int, str] = field(default_factory=dict)

    def add(self, result: Document) -> None:
        """Add one line of a worker."""
        self.schedules += 1
        self.acts += result["acts"]
        self.faults += result["faults"]
        self.intervals += len(result["intervals"])
        self.missed += sum(result["intervals"])
        self.ends[result["seed"]] = result["end"]
        if result["problems"]:
            self.failed.append(result)

    @property
    def misses_too_often(self) -> bool:
        """Beyond what the intervals' level explains, by four standard errors."""
        spread = math.sqrt(self.intervals * NOMINAL * (1 - NOMINAL))
        return self.missed > self.intervals * NOMINAL + 4 * spread

    def __str__(self) -> str:
        share = self.missed / self.intervals if self.intervals else 0.0
        return (
            f"{self.schedules:,} schedules with {self.acts:,} acts and {self.faults:,} faults:"
            f" {len(self.failed):,} failed; {self.missed:,} of {self.intervals:,} intervals"
            f" ({share:.1%}, at most {NOMINAL:.0%}) missed the true speed-up"
        )


def tried(
    seeds: range,
    schedules: Sequence[Document] = (),
    *,
    processes: int = 1,
    seen: Callable[[Summary], None] = lambda _: None,
    environment: dict[str, str] | None = None,
) -> Summary:
    """Play the schedules of these seeds, and these schedules; raises what ends a worker."""
    summary, lock = Summary(), threading.Lock()
    given = {"definitions": definitions(), "workload": WORKLOAD}
    workers = []
    for number in range(processes):
        part = {
            "seeds": [seeds.start + number, seeds.stop, processes],
            "schedules": list(schedules[number::processes]),
        }
        workers.append(_worker({**given, **part}, environment))

    def read(lines: Iterable[str]) -> None:
        for line in lines:
            with lock:
                summary.add(json.loads(line))
                seen(summary)

    readers = [threading.Thread(target=read, args=[one.stdout]) for one in workers]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    for one in workers:
        if one.wait():
            raise RuntimeError(f"a worker of the simulation ended with {one.returncode}")
    return summary


def _worker(given: Document, environment: dict[str, str] | None) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [PYTHON, "-m", "tests.faults.simulation_worker"], cwd=REPOSITORY, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**ENVIRONMENT, **(environment or {})},
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(given))
    process.stdin.close()
    return process


def kept() -> dict[str, Document]:
    """Schedules that failed once, by name: each is played in every run of the tests."""
    return {path.stem: json.loads(path.read_text())["schedule"] for path in KEPT.glob("*.json")}


def keep(failed: Document) -> Path:
    """Write the smallest schedule that shows a failure."""
    path = KEPT / f"seed-{failed['seed']}.json"
    document = {"problems": failed["still"], "schedule": failed["smallest"]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def main() -> int:
    """Play them, say how it goes on and what failed; 1 where anything did."""
    count, seed = int(os.environ.get("SCHEDULES", "100000")), int(os.environ.get("SEED", "1"))
    begun = said = time.monotonic()

    def progress(summary: Summary) -> None:
        nonlocal said
        if time.monotonic() - said > EVERY_SECONDS:
            said = time.monotonic()
            rate = summary.schedules / (said - begun)
            _say(f"{summary} ({rate:.1f} a second, {count - summary.schedules:,} to go)")

    summary = tried(
        range(seed, seed + count), list(kept().values()),
        processes=int(os.environ.get("PROCESSES") or os.cpu_count() or 1), seen=progress,
    )  # fmt: skip
    for failed in summary.failed:
        _say(f"seed {failed['seed']}: {failed['problems']}", f"  kept as {keep(failed)}")
    _say(str(summary))
    return int(bool(summary.failed) or summary.misses_too_often)


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
