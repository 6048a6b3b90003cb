"""Records what the expressions of the state machines are given and give, in real executions.

``python -m tests.asl.record`` runs every scenario in an embedded cloud of its own, which takes
minutes, and writes ``recorded/evaluate.jsonl`` and ``recorded/train.jsonl`` anew. With names of
scenarios as arguments it runs those alone, and adds what is not yet recorded.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from compilegate_localcloud.places import REPOSITORY
from tests.asl.definitions import recording_keys, synthesised
from tests.asl.recordings import joined, read, select, write
from tests.asl.scenario_runner import ScenarioRunner
from tests.asl.scenarios import ONE_BY_ONE, SIDE_BY_SIDE, Scenario
from tests.e2e.conftest import deployed

# As many as the emulator has slots for jobs.
AT_ONCE = 8


def record(
    home: Path,
    side_by_side: Mapping[str, Scenario] = SIDE_BY_SIDE,
    one_by_one: Mapping[str, Scenario] = ONE_BY_ONE,
) -> Path:
    """Run the scenarios in one cloud; returns the file of what was recorded."""
    failed = False
    with deployed(home, "--record-expressions") as app:
        runner = ScenarioRunner(app)
        for scenarios, at_once in ((side_by_side, AT_ONCE), (one_by_one, 1)):
            with ThreadPoolExecutor(at_once) as pool:
                futures = {
                    name: pool.submit(_timed, name, one, runner) for name, one in scenarios.items()
                }
            failed |= sum(_report(name, future) for name, future in futures.items()) > 0
    if failed:
        raise SystemExit("nothing was written: every scenario must run to its end")
    return home / "logs" / "expressions.jsonl"


def _timed(name: str, scenario: Scenario, runner: ScenarioRunner) -> None:
    began = time.monotonic()
    scenario(runner)
    print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)


def _report(name: str, future: Future[None]) -> bool:
    error = future.exception()
    if error is not None:
        print(f"{name} failed:\n{''.join(traceback.format_exception(error))}", file=sys.stderr)
    return error is not None


def main(names: Sequence[str]) -> None:
    """Record, choose, write."""
    keys = recording_keys(synthesised())
    with tempfile.TemporaryDirectory(prefix="compilegate-record-") as folder:
        path = record(Path(folder), _named(SIDE_BY_SIDE, names), _named(ONE_BY_ONE, names))
        with path.open(encoding="utf-8") as lines:
            chosen = select(lines, keys, neutral(str(REPOSITORY), folder))
    write(joined(read(), chosen, keys) if names else chosen)


def _named(scenarios: Mapping[str, Scenario], names: Sequence[str]) -> dict[str, Scenario]:
    return {name: one for name, one in scenarios.items() if name in names or not names}


def neutral(*places: str) -> dict[str, str]:
    """Each place with a text of the same length that says nothing of this machine."""
    return {place: "/" + "x" * (len(place) - 1) for place in places}


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - SIDE_BY_SIDE.keys() - ONE_BY_ONE.keys()
    if unknown:
        sys.exit(f"not in tests/asl/scenarios.py: {', '.join(sorted(unknown))}")
    main(sys.argv[1:])
