"""``python -m tests.faults.simulation_worker``: plays schedules, shrinks those that fail.

Standard input: ``{"definitions", "workload", "seeds", "schedules"}``; of ``seeds`` (first, end,
step) the schedules are made. Standard output gets a line per schedule, see ``played``. Of
``.venv-localcloud``.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from tests.faults.machine import define
from tests.faults.simulation_check import intervals, problems
from tests.faults.simulation_play import Player
from tests.faults.simulation_schedule import FAULTS, Document, Schedule, schedule
from tests.faults.simulation_shrink import shrunk
from tests.faults.simulation_world import Cloud

# The words of a problem without names and figures: what a smaller schedule has to show as well.
_NAMES = re.compile(r"\S*\d\S*")


def main() -> None:
    logging.disable(logging.CRITICAL)
    given = json.load(sys.stdin)
    define(given["definitions"])
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    for one in _schedules(given):
        sys.stdout.write(json.dumps(played(given["workload"], one)) + "\n")
        sys.stdout.flush()


def _schedules(given: Document) -> Iterator[Schedule]:
    yield from map(Schedule.read, given["schedules"])
    yield from map(schedule, range(*given["seeds"]))


def played(workload: Document, one: Schedule) -> dict[str, Any]:
    """Seed, problems, what happened, a digest of the end; if it failed, the smallest schedule."""
    player = Player(workload, one)
    found, missed, end = _outcome(player)
    faults = sum(player.happened[name] for name in FAULTS) + one.count_lies()
    result = {
        "seed": one.seed, "problems": found, "acts": sum(player.happened.values()) - faults,
        "faults": faults, "intervals": missed, "end": end,
    }  # fmt: skip
    if found:
        first = _kind(found[0])
        smallest = shrunk(
            one,
            lambda other: first in map(_kind, _outcome(Player(workload, other))[0]),
        )
        result |= {
            "smallest": smallest.document(),
            "still": _outcome(Player(workload, smallest))[0],
        }
    return result


def _outcome(player: Player) -> tuple[list[str], list[bool], str]:
    """What is wrong, which intervals missed the truth, and a digest of all that is left."""
    try:
        cloud = player.play()
        missed = [not holds for holds in intervals(cloud)]
        wrong = problems(cloud)
    except Exception:  # noqa: BLE001 - a schedule that breaks the simulation is a finding, too
        return [traceback.format_exc(limit=-4)], [], ""
    return wrong, missed, _digest(cloud)


def _digest(cloud: Cloud) -> str:
    """Of the ledger, the jobs and what was said to people."""
    entries = sorted((list(key), dict(one)) for key, one in cloud.services.ledger.raw.items.items())
    jobs = [
        (name, one["TrainingJobStatus"]) for name, one in cloud.services.jobs.descriptions.items()
    ]
    texts = [message.text for message in cloud.topic.sent]
    left = json.dumps([entries, jobs, texts, cloud.now], sort_keys=True, default=str)
    return hashlib.sha256(left.encode()).hexdigest()[:16]


def _kind(problem: str) -> str:
    return _NAMES.sub("", problem)[:80]


if __name__ == "__main__":
    main()
