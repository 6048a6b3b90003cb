"""What production trains, and when: the registration of one workload, and the job that it names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain.codec import read
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

    schema: int = field(default=SCHEMA, init=False)
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

    def says_the_same(self, other: Registration) -> bool:
        """Whether both register the same thing, in whatever order and state."""
        return replace(self, revision=other.revision, settled=other.settled) == other


def registration_of(change: RegistrationChange) -> Registration:
    """The registration that a ledger record holds; raises as ``read_registration`` does."""
    return read_registration(change.document or {})


def read_registration(document: Mapping[str, Any]) -> Registration:
    """Only ``true`` is active or settled; raises KeyError, TypeError, ValueError."""
    active, settled = document["active"] is True, document.get("settled", True) is True
    return read(Registration, {**document, "active": active, "settled": settled})


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
