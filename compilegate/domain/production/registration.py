"""What production trains, and when: the registration of one workload, and the job that it names.

And what registering a workload changes, and whether its name may be taken over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from compilegate.domain.codec import read, write
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.records.production import RegistrationChange
from compilegate.domain.workload.model import Workload
from compilegate.domain.workload.schedule_expression import UTC

SCHEMA = 1
# Carries a fault to a job, to see the review detect it (training/families/faults.py).
FAULT_VARIABLE = "INJECTED_FAULT"


@dataclass(frozen=True)
class Registration:
    """One workload as production knows it; an inactive one is retired, its history stays.

    ``schedule`` is an expression of EventBridge Scheduler in ``timezone``, None where the team
    starts the runs. ``origin`` is the workload file, from its project folder. ``target`` names what
    the schedule starts and as whom, so that a deployment that has changed is noticed.
    ``revision`` counts the changes from 1, as the ledger does. Until it is ``complete``, the
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
    complete: bool = True

    def says_the_same(self, other: Registration) -> bool:
        """Whether both register the same thing, in whatever order and state."""
        return replace(self, revision=other.revision, complete=other.complete) == other


# That of a name for which there is none.
NOT_REGISTERED = Registration(workload="", spec_key="", source_digest="")


def read_registration(document: Mapping[str, Any]) -> Registration:
    """As it is stored; only ``true`` is active or complete.

    Raises KeyError, TypeError, ValueError.
    """
    active, complete = document["active"] is True, document.get("complete", True) is True
    return read(Registration, {**document, "active": active, "complete": complete})


@dataclass(frozen=True)
class TrainedJob:
    """A workload as one spec holds it, and the digest of its code."""

    workload: Workload
    code: str

    @property
    def fields(self) -> dict[str, Any]:
        """What the job trains, by dotted names, and the metric that it is measured by.

        Nothing else of quality, nothing of policy and schedule, nor other machines that production
        may fall back to, as runs on those are not evidence.
        """
        document = self.workload.to_dict()
        fields = {
            f"{section}.{key}": value
            for section in ("framework", "training")
            for key, value in document[section].items()
            if key != "fallback_instances"
        }
        return {**fields, "quality.metric": self.workload.quality.metric}

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


# What registering does, in one word.
NEW, UPDATED, UNCHANGED, REVIVED = "new", "updated", "unchanged", "revived"
COMPLETED, REPAIRED, RETIRED = "completed", "repaired", "retired"


@dataclass(frozen=True)
class Change:
    """A field of a workload that is not what it was, None where it was or is not there."""

    field: str
    before: Any
    after: Any


def check_owner(current: Registration, requested: Registration) -> None:
    """Raises InvalidInputError for a name that is another owner's."""
    if current.owner is None or current.owner == requested.owner:
        return
    place = f" from {current.origin}" if current.origin else ""
    raise InvalidInputError(
        f"is registered by the owner {current.owner}{place}, and this file's owner is "
        f"{requested.owner or 'not named'}",
        field="name",
        value=requested.workload,
        fix="choose another name; to replace that workload, and continue its flag and history, "
        "use --take-over",
    )


def outcome_of(current: Registration, requested: Registration) -> str:
    """Whether the workload is new, or what happens to its registration: one of those above."""
    if current == NOT_REGISTERED:
        return NEW
    if not current.says_the_same(requested):
        return UPDATED if current.active else REVIVED
    return REPAIRED if current.complete else COMPLETED


def replaced_source(current: Registration, requested: Registration) -> str | None:
    """The other source that the name stood for, None where it is the same one."""
    same = (current.origin, current.owner) == (requested.origin, requested.owner)
    if same or current == NOT_REGISTERED:
        return None
    owner = f" of {current.owner}" if current.owner else ""
    return f"{current.origin or 'an unknown file'}{owner}"


def registration_changes(
    current: Registration,
    requested: Registration,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> tuple[Change, ...]:
    """What registering changes; ``before`` and ``after`` are the specs that the two name.

    The spec of an earlier release need not be readable as a workload any more.
    """
    if current == NOT_REGISTERED:
        return ()
    differences: list[Change] = []
    if current.spec_key != requested.spec_key:
        # The source's digest is compared apart, instead of what is made of it.
        made = {"source_key": None, "code_digest": None}
        differences += _document_changes({**before, **made}, {**after, **made})
    own_code = before.get("code_digest") != after.get("code_digest")
    part = "source" if own_code or not before.get("code_digest") else "recorder"
    for name, was, now in (
        (part, current.source_digest, requested.source_digest),
        ("file", current.origin, requested.origin),
        ("deployment", current.target, requested.target),
    ):
        differences += [Change(name, was, now)] if was != now else []
    return tuple(differences)


def next_change(
    latest: Registration,
    requested: Registration,
    made: Sequence[Change],
    *,
    by: str,
    at: int,
) -> RegistrationChange:
    """The ledger's record of ``requested``, under the revision after ``latest``."""
    revision = latest.revision + 1
    return RegistrationChange(
        at=at,
        revision=revision,
        active=requested.active,
        by=by,
        changes=tuple(asdict(one) for one in made),
        document=write(replace(requested, revision=revision, complete=True)),
    )


def _document_changes(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """What differs between two specs, by dotted names in order; those of the workload alone."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            place = f"{path}.{key}" if path else str(key)
            yield from _document_changes(before.get(key), after.get(key), place)
    elif before != after:
        yield Change(path.removeprefix("workload."), before, after)
