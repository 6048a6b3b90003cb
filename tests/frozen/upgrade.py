"""Clouds as release 0.1 left them, continued by today's code, as after an upgrade.

``tests/fixtures/records-0.1`` holds them, each while an execution waits or after it has ended:
every object, ledger entry, flag and lease. The code of that release wrote them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.frozen.commands import YES
from tests.frozen.machines import NAME, SPEC_KEY, TRIAL, World
from tests.frozen.recording import Case

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "records-0.1"


def trial_ends(world: World) -> None:
    world.resume()
    look_up_everything(world)


def approval(world: World) -> None:
    """A person approves the promotion."""
    world.command("status", NAME)
    world.command("flag", "approve", NAME, *YES)
    world.step("await_approval", workload=NAME, trial=TRIAL, spec_key=SPEC_KEY, token="approval")
    items = world.cloud.services.ledger.raw.items
    (key,) = {entry["decision_key"] for entry in items.values() if "decision_key" in entry}
    world.apply_decision(key)
    look_up_everything(world)


def production_ends_the_trial(world: World) -> None:
    """Production makes the other runs, and the trial ends."""
    world.command("status", NAME)
    for _ in range(3):
        world.production_run()
    world.resume(between=world.production_run)
    look_up_everything(world)


def new_trial(world: World) -> None:
    """Production runs, and another trial after the cool-down."""
    look_up_everything(world)
    for _ in range(3):
        world.production_run()
    world.passes(15 * 86_400)
    world.evaluate("ijkl9012")
    world.production_run()
    look_up_everything(world)


def undrained(world: World) -> None:
    """The drain ends, and production trains."""
    look_up_everything(world)
    world.command("drain", "--undo")
    for _ in range(2):
        world.production_run()
    look_up_everything(world)


def look_up_everything(world: World) -> None:
    """Every command that reads the ledger and the records; trials and probations are replayed."""
    ids = {
        entry["decision_id"]
        for entry in world.cloud.services.ledger.raw.items.values()
        if entry.get("decision_key")
    }
    for decision in sorted(ids):
        world.command("judge", "--replay", decision)
    for arguments in (
        ("status",), ("status", NAME), ("flag", "show", NAME), ("flag", "history", NAME),
        ("digest",), ("drain", "--check"),
    ):  # fmt: skip
        world.command(*arguments)


# Each cloud, as it was left, with what happens next.
CLOUDS: dict[str, Callable[[World], None]] = {
    "half-way": trial_ends,  # the first full runs have ended and are not judged
    "failed-jobs": trial_ends,  # with a job that had no capacity
    "waits-for-approval": approval,
    "waits-for-production": production_ends_the_trial,
    "reverted": new_trial,
    "stopped": new_trial,  # a trial was aborted, and the flag changed by hand
    "carried": new_trial,  # production made the full runs, and a person approved
    "registered": undrained,  # from files, retired and registered again; then drained
}


def cases() -> list[Case]:
    """What becomes of each cloud."""
    return [Case(name, partial(_continued, name)) for name in CLOUDS]


def _continued(name: str) -> Any:
    stored = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    world = World.restored(stored)
    CLOUDS[name](world)
    return world.state()
