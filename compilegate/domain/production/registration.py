"""What production trains, and when: the registration of one workload, and the job that it names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain.records.registrations import RegistrationChange
from compilegate.domain.workload.model import Workload
from compilegate.domain.workload.schedule_expression import UTC

SCHEMA = 1
# Carries a fault to a job, to see the watch detect it (training/families/faults.py).
FAULT_VARIABLE = "INJECTED_FAULT"


@dataclass(frozen=True)
class Registration:
    """One workload as production knows it; an inactive one is retired, its history stays.

    ``schedule`` is an expression of EventBridge Scheduler in ``timezone``, None where the team
    starts the runs. ``origin`` is the workload file, from its project folder. ``target`` names what
    the schedule starts and as whom, so that a deployment that has changed is noticed.
    ``revision`` counts the changes from 1, as the ledger does. Until it is ``settled``, the
    schedule may still be the one before.
    """

    workload: str
    spec_key: str
    source_digest: str
    schedule: str | None = None
    timezone: str = UTC
    active: bool = True
    owner: str | None = None
    origin: str | None = None
    target: str | None = None
    revision: int = 0
    settled: bool = True

    def to_dict(self) -> dict[str, Any]:
        """The document."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Registration:
        """Read a document of any release; raises KeyError, TypeError, ValueError."""
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']} is not {SCHEMA}")
        return cls(
            workload=str(document["workload"]),
            spec_key=str(document["spec_key"]),
            source_digest=str(document["source_digest"]),
            # Anything else must not pass for a workload that trains.
            active=document["active"] is True,
            schedule=document.get("schedule"),
            timezone=str(document.get("timezone", UTC)),
            owner=document.get("owner"),
            origin=document.get("origin"),
            target=document.get("target"),
            revision=int(document.get("revision", 0)),
            settled=document.get("settled", True) is True,
        )

    def says_the_same(self, other: Registration) -> bool:
        """Whether both register the same thing, in whatever order and state."""
        return replace(self, revision=other.revision, settled=other.settled) == other


def registration_of(change: RegistrationChange) -> Registration:
    """The registration that a ledger record holds; raises KeyError, TypeError, ValueError."""
    return Registration.from_dict(change.document or {})


@dataclass(frozen=True)
class TrainedJob:
    """A workload as one spec holds it, and the digest of its code."""

    workload: Workload
    code: str

    @property
    def fields(self) -> dict[str, Any]:
        """What the job trains, by dotted names: nothing of policy, quality and schedule.

        Nor other machines that production may fall back to, as runs on those are not evidence.
        """
        document = self.workload.to_dict()
        return {
            f"{section}.{key}": value
            for section in ("framework", "training")
            for key, value in document[section].items()
            if key != "fallback_instances"
        }

    @property
    def digest(self) -> str:
        """One text for one job: its fields and the source."""
        text = json.dumps([self.fields, self.code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def injected_fault(workload: Mapping[str, Any]) -> str | None:
    """The fault that a workload (``Workload.to_dict``) asks for, None without one."""
    environment = (workload.get("training") or {}).get("environment") or {}
    fault = environment.get(FAULT_VARIABLE)
    return str(fault) if fault else None
