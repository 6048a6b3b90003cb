"""Clouds as release 0.1 left them, which today's code goes on from: the way of an upgrade.

``tests/fixtures/records-0.1`` holds them, each at a moment at which an execution waits or has
ended: every object, ledger entry, flag and lease. ``python -m tests.frozen.upgrade`` wrote them,
with the code of that release; they are not written again.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.frozen.commands import YES, write_files
from tests.frozen.eligibility import in_project
from tests.frozen.machines import NAME, SPEC_KEY, TRIAL, World
from tests.frozen.recording import Case, canonical
from tests.frozen.scenarios import NO_CAPACITY, only, production, promoted, workload

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "records-0.1"


class LeftThere(BaseException):
    """Nothing more happens in this world; no machine catches it."""


def half_way() -> World:
    """A trial whose first full runs have ended and have not been judged."""
    made = World(workload())
    made.evaluate(rounds=3)
    return made


def failed_jobs() -> World:
    """A trial with the outcome of a job that found no machine."""
    made = World(workload(), ends=only(NO_CAPACITY, stage="speed", first=1))
    made.evaluate(rounds=1)
    return made


def waits_for_approval() -> World:
    """A promotion that nobody has answered yet."""
    made = World(workload(policy__approval="required"))
    _until_left(made, after=0)
    return made


def waits_for_production() -> World:
    """A trial whose full runs production makes, after the first of them."""
    made = World(workload(schedule__cron="rate(1 day)", policy__quality_runs="canary"))
    made.register()
    made.night()
    _until_left(made, after=1)
    return made


def reverted() -> World:
    """A promotion that was reverted."""
    return production(12, falls=0.02)


def stopped() -> World:
    """A trial that was aborted; a person's word on the flag; a drained and an idle deployment."""
    made = promoted()
    made.night()
    made.command("flag", "revert", NAME, *YES)
    made.command("flag", "set", NAME, "--candidate", "compile", *YES)
    made.end_of = only(NO_CAPACITY, stage="production")()
    made.night()
    made.evaluate("efgh5678", rounds=1)
    event = {"workload": NAME, "trial": "efgh5678", "spec_key": SPEC_KEY}
    execution = str(made.cloud.services.locks.holder(NAME))
    made.step("abort_trial", **event, execution=execution, error="States.Timeout", cause="")
    return made


def carried() -> World:
    """A promotion whose full runs production made and a person agreed to."""
    made = World(
        workload(schedule__cron="rate(1 day)", policy__quality_runs="canary",
                 policy__approval="required")
    )  # fmt: skip
    made.register()

    def between() -> None:
        if "approval" in made.cloud.services.tokens.waiting:
            made.command("flag", "approve", NAME, *YES)
        else:
            made.night()

    made.evaluate(between=between)
    return made


def registered() -> World:
    """Workloads that were registered from files, retired and revived, and a drained deployment."""
    made = World(workload())

    def run() -> None:
        write_files()
        for line in (
            ("register", "w.yaml"), ("register", "other.yaml"), ("register", "--remove", NAME),
            ("register", "w.yaml"), ("drain", "--yes", "--timeout", "0"),
        ):  # fmt: skip
            made.command(*line)

    in_project(b"", run)
    return made


def _until_left(made: World, *, after: int) -> None:
    def between() -> None:
        for _ in range(after):
            made.night()
        raise LeftThere

    try:
        made.evaluate(between=between)
    except LeftThere:
        return


def goes_on(world: World) -> None:
    """The trial goes on to its end."""
    world.resume()
    look_around(world)


def is_approved(world: World) -> None:
    """A person agrees."""
    world.command("status", NAME)
    world.command("flag", "approve", NAME, *YES)
    world.step("await_approval", workload=NAME, trial=TRIAL, spec_key=SPEC_KEY, token="approval")
    items = world.cloud.services.ledger.items
    (key,) = {entry["decision_key"] for entry in items.values() if "decision_key" in entry}
    world.settle(key)
    look_around(world)


def is_carried(world: World) -> None:
    """Production makes the other runs, and the trial ends."""
    world.command("status", NAME)
    for _ in range(3):
        world.night()
    world.resume(between=lambda: world.night() and None)
    look_around(world)


def trains(world: World) -> None:
    """More nights, and another trial after the days of rest."""
    look_around(world)
    for _ in range(3):
        world.night()
    world.passes(15 * 86_400)
    world.evaluate("ijkl9012")
    world.night()
    look_around(world)


def works_again(world: World) -> None:
    """The deployment is let go on, and production trains."""
    look_around(world)
    world.command("drain", "--undo")
    for _ in range(2):
        world.night()
    look_around(world)


def look_around(world: World) -> None:
    """Every command that reads the ledger and the records."""
    ids = {
        entry["decision_id"]
        for (_, key), entry in world.cloud.services.ledger.items.items()
        if key.endswith("#decision")
    }
    for decision in sorted(ids):
        world.command("judge", "--replay", decision)
    for arguments in (
        ("status",), ("status", NAME), ("flag", "show", NAME), ("flag", "history", NAME),
        ("digest",), ("drain", "--check"),
    ):  # fmt: skip
        world.command(*arguments)


STORES: dict[str, tuple[Callable[[], World], Callable[[World], None]]] = {
    "half-way": (half_way, goes_on),
    "failed-jobs": (failed_jobs, goes_on),
    "waits-for-approval": (waits_for_approval, is_approved),
    "waits-for-production": (waits_for_production, is_carried),
    "reverted": (reverted, trains),
    "stopped": (stopped, trains),
    "carried": (carried, trains),
    "registered": (registered, works_again),
}


def cases() -> list[Case]:
    """What becomes of each cloud."""
    return [Case(name, partial(_continued, name)) for name in STORES]


def _continued(name: str) -> Any:
    world = World.restored(stored(name))
    STORES[name][1](world)
    return world.state()


def stored(name: str) -> dict[str, Any]:
    """A cloud as it was left."""
    body = gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())
    world: dict[str, Any] = json.loads(body)
    return world


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (leave, _) in STORES.items():
        body = canonical(leave().kept()).encode()
        (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(body, 9, mtime=0))
