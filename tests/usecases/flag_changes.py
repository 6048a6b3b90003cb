"""Changes of a flag as the machines and people ask for them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.domain.records.flags import FlagVersion

WORKLOAD = "bert-docs"
FLAG = naming.flag_parameter("prod", WORKLOAD)
OVERRIDES = {"compiler": "torch_compile"}
# What every kind of change wants; a person's come by name.
FLAGS = {
    "enable": Flag(True, "probation", "compile", OVERRIDES, "d1"),
    "disable": Flag(False, "off", decision_id="d2"),
    "revert": Flag(False, "reverted", "compile", OVERRIDES, "d3"),
    "permanent": Flag(True, "permanent", "compile", OVERRIDES, "d4"),
    "stale": Flag(False, "stale", "compile", OVERRIDES, "d5"),
    # What the review has made of version 1, and came late with.
    "late revert": Flag(False, "reverted", "compile", OVERRIDES, "d6"),
    "late permanent": Flag(True, "permanent", "compile", OVERRIDES, "d7"),
    "late stale": Flag(False, "stale", "compile", OVERRIDES, "d8"),
    "other enable": Flag(True, "probation", "other", {"batch_size": 64}, "d9"),
    "human set": Flag(True, "probation", "other", {"batch_size": 48}),
    "human revert": Flag(False, "off"),
}


def flag_change(kind: str, change_id: str | None = None, decided_at: int = 0) -> FlagVersion:
    """A change of this kind; a machine's reaches as far as ``decided_at``."""
    human, late = kind.startswith("human "), kind.startswith("late ")
    return FlagVersion(
        version=0,
        at=0,
        change_id=change_id or f"{kind}#1",
        by="human:ana" if human else "train" if late else "evaluate",
        action=kind.rsplit(maxsplit=1)[-1],
        value=FLAGS[kind].to_json(),
        reason=f"because of {kind}",
        decided_at=decided_at,
        decision_id=FLAGS[kind].decision_id,
        based_on=1 if late else None,
    )


def history(services: Any, workload: str = WORKLOAD) -> list[dict[str, Any]]:
    """The ledger's changes of the flag as they lie there."""
    entries: list[dict[str, Any]] = services.ledger.raw.entries(workload, "flag#")
    return entries


def assert_sound(services: Any, workload: str = WORKLOAD) -> None:
    """Ledger and parameter agree, no gap, nothing doubled, no newer word of a person overruled."""
    entries = history(services, workload)
    assert list(range(1, len(entries) + 1)) == [entry["version"] for entry in entries]
    ids = [entry["change_id"] for entry in entries]
    assert sorted(set(ids)) == sorted(ids)
    flag = services.flags.read(naming.flag_parameter(services.settings.stage, workload))
    assert flag == (entries[-1]["to"] if entries else None)
    for before, after in pairwise(entries):
        assert after["from"] == before["to"]
    for at, entry in enumerate(entries):
        if entry["based_on"] and entry["based_on"] <= at:
            assert candidate_of(entries[entry["based_on"] - 1]["to"]) == candidate_of(entry["from"])
        if entry["by"].startswith("human:") or entry["action"] == "revert":
            continue
        said = [one["at"] for one in entries[:at] if one["by"].startswith("human:")]
        assert all(moment < entry["decided_at"] for moment in said), entry


def candidate_of(flag: str) -> Any:
    """What a flag's text stands for, on or off."""
    return json.loads(flag)["candidate"]
