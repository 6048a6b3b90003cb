"""What production trains, and when: the registration of one workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

SCHEMA = 1


@dataclass(frozen=True)
class Registration:
    """One workload as production knows it; an inactive one is retired, its history stays.

    ``schedule`` is an expression of EventBridge Scheduler in UTC, None where the team starts
    the runs. ``origin`` is the workload file, from its project folder. ``target`` names what
    the schedule starts and as whom, so that a deployment that has changed is noticed.
    ``revision`` counts the changes from 1, as the ledger does.
    """

    workload: str
    spec_key: str
    source_digest: str
    schedule: str | None = None
    active: bool = True
    owner: str | None = None
    origin: str | None = None
    target: str | None = None
    revision: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The document."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Registration:
        """Read a document, whichever release wrote it; raises KeyError, TypeError, ValueError."""
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']} is not {SCHEMA}")
        return cls(
            workload=str(document["workload"]),
            spec_key=str(document["spec_key"]),
            source_digest=str(document["source_digest"]),
            # Anything else must not pass for a workload that trains.
            active=document["active"] is True,
            schedule=document.get("schedule"),
            owner=document.get("owner"),
            origin=document.get("origin"),
            target=document.get("target"),
            revision=int(document.get("revision", 0)),
        )

    def retired(self) -> Registration:
        """The same, no longer trained."""
        return replace(self, active=False)

    def says_the_same(self, other: Registration) -> bool:
        """Whether both register the same thing, whichever came first."""
        return replace(self, revision=0) == replace(other, revision=0)


def changed_fields(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Dotted names of the fields of a workload's document that differ, in order."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            place = f"{path}.{key}" if path else str(key)
            yield from changed_fields(before.get(key), after.get(key), place)
    elif before != after:
        yield path
