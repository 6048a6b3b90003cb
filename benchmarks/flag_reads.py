"""What reading flags takes: jobs that all ask at once, and how long one answer takes.

Bursts are simulated with the client's own waits; reads are timed against the
emulator on this machine, so that the network to AWS comes on top. The limit is AWS's: 40
GetParameter transactions a second for an account and region unless higher throughput is switched
on (AWS General Reference, Systems Manager endpoints and quotas). That a refused request costs no
transaction, and that one second's worth may be used at once, is assumed.
"""

from __future__ import annotations

import heapq
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import results
from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.flags import resolve
from compilegate.flags.backoff import Backoff
from compilegate.flags.reading import forget
from compilegate_localcloud.connection import RunState
from compilegate_localcloud.lifecycle import LocalCloud
from compilegate_localcloud.places import REPOSITORY, Places

PER_SECOND = 40
JOBS = 10_000
SEEDS = (17, 18, 19)
# What boto3 would do by itself (legacy mode): five attempts.
BOTO3_ATTEMPTS = 5
NAME, STAGE = "bench", "local"
WARM_READS, CACHED_READS = 300, 20_000
COLD_PROCESSES = 10
COLD = (
    "import time; began = time.perf_counter(); from compilegate.flags import resolve; "
    f"assert resolve({NAME!r}, stage={STAGE!r}); print(time.perf_counter() - began)"
)
# Seconds within which the jobs ask: one, a minute, or ten minutes as their nodes come up.
SPREADS = (1.0, 60.0, 600.0)
# Share of the account's transactions that others than these jobs use.
OTHERS = (0.0, 0.25, 0.5)


@dataclass(frozen=True)
class Burst:
    """How one burst went: ``waited`` are seconds from a job's first question to its answer."""

    served: int
    baseline: int
    requests: int
    waited: list[float]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Figures of the burst, in seconds."""
        waits = sorted(self.waited) or [0.0]
        return {
            "served": self.served,
            "fell_to_baseline": self.baseline,
            "requests_per_job": round(self.requests / (self.served + self.baseline), 1),
            "waited_median": round(statistics.median(waits), 1),
            "waited_95_percent": round(waits[int(0.95 * (len(waits) - 1))], 1),
            "waited_longest": round(waits[-1], 1),
            "over_after": round(self.seconds, 1),
        }


class TokenBucket:
    """Parameter Store's limit; holds one second's worth at most."""

    def __init__(self, per_second: float) -> None:
        self._rate, self._tokens, self._at = per_second, per_second, 0.0

    def take(self, now: float) -> bool:
        """Whether a request at ``now`` (seconds, never earlier than the last) is answered."""
        self._tokens = min(self._rate, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def burst(
    jobs: int,
    spread: float,
    bucket: TokenBucket,
    backoff: Backoff,
    *,
    seed: int,
    attempts: float = math.inf,
) -> Burst:
    """``jobs`` that begin to ask evenly at random within ``spread`` seconds.

    Each asks as the client does: it waits what the client would wait, and gives up where its next
    question would come later than its backoff allows.
    """
    chance = random.Random(seed)
    starts = [chance.uniform(0, spread) for _ in range(jobs)]
    waits = [backoff.waits(chance.uniform) for _ in range(jobs)]
    due = [(start, number) for number, start in enumerate(starts)]
    heapq.heapify(due)
    waited: list[float] = []
    requests, lost, now = [0] * jobs, 0, 0.0
    while due:
        now, number = heapq.heappop(due)
        requests[number] += 1
        if bucket.take(now):
            waited.append(now - starts[number])
            continue
        again = now + next(waits[number])
        if again > starts[number] + backoff.seconds or requests[number] >= attempts:
            lost += 1
        else:
            heapq.heappush(due, (again, number))
    return Burst(len(waited), lost, sum(requests), waited, now)


def bursts(backoff: Backoff, attempts: float = math.inf) -> list[dict[str, Any]]:
    """Every spread with and without other users of the limit; the worst of the seeds."""
    rows = []
    for spread in SPREADS:
        for others in OTHERS:
            runs = [
                burst(
                    JOBS, spread, TokenBucket(PER_SECOND * (1 - others)), backoff,
                    seed=seed, attempts=attempts,
                )
                for seed in SEEDS
            ]  # fmt: skip
            worst = max(runs, key=lambda run: (run.baseline, max(run.waited, default=0.0)))
            rows.append({"spread_seconds": spread, "used_by_others": others, **worst.to_dict()})
    return rows


def reads() -> dict[str, float]:
    """Milliseconds of one answer: from a fresh process, a warm client, and the cache."""
    with tempfile.TemporaryDirectory() as home, LocalCloud(places=_places(Path(home))) as cloud:
        state = cloud.start(attached=True)
        ssm = cloud.client("ssm")
        flag = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "t")
        parameter = naming.flag_parameter(STAGE, NAME)
        ssm.put_parameter(Name=parameter, Value=flag.to_json(), Type="String")
        return {
            "fresh_process_ms": _middle(_cold(state) for _ in range(COLD_PROCESSES)),
            "warm_client_ms": _middle(_timed(ssm, anew=True) for _ in range(WARM_READS)),
            "cached_ms": _middle(_timed(ssm, anew=False) for _ in range(CACHED_READS)),
        }


def _places(home: Path) -> Places:
    python = REPOSITORY / ".venv-localcloud" / "bin" / "python"
    return Places(
        home=home,
        repository=REPOSITORY,
        emulator_python=python,
        training_python=Path(sys.executable),
    )


def _cold(state: RunState) -> float:
    run = subprocess.run(
        [sys.executable, "-c", COLD], env={**os.environ, **state.environment()},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(run.stdout)


def _timed(ssm: Any, *, anew: bool) -> float:
    if anew:
        forget()
    began = time.perf_counter()
    if not resolve(NAME, stage=STAGE, client=ssm):
        raise AssertionError("the flag was not read")
    return time.perf_counter() - began


def _middle(seconds: Iterable[float]) -> float:
    return round(1000 * statistics.median(seconds), 4)


def measure() -> dict[str, Any]:
    """Every figure of flag-reads.json."""
    backoff = Backoff()
    return {
        "reads": reads(),
        "limit_per_second": PER_SECOND,
        "jobs": JOBS,
        "seeds": list(SEEDS),
        "backoff": asdict(backoff),
        "bursts": bursts(backoff),
        "boto3_alone": bursts(Backoff(most=20.0), attempts=BOTO3_ATTEMPTS),
    }


if __name__ == "__main__":
    results.keep("flag-reads", measure)
