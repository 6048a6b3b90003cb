"""Registers workloads with production, retires them, and reads what is registered.

The order makes a crash anywhere harmless: what the spec names is uploaded, the ledger says what
is meant, and only then schedule and registration follow it. A registration that says it is
settled is the proof that all of it was done, so that an unchanged workload costs one look.
Two that register at once each append to the ledger, and whoever ends last brings schedule and
registration to its latest entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.registration import Change, Registration, changes
from compilegate.ports import ObjectStore, Schedules, Services
from compilegate.usecases.change_flag import latest_flag
from compilegate.usecases.production.canary import end_carried
from compilegate.usecases.submit import Package, Shipment, prepare, upload
from compilegate.usecases.trial import to_json

NEW, UPDATED, UNCHANGED, REVIVED = "new", "updated", "unchanged", "revived"
COMPLETED, SET_AGAIN, RETIRED = "completed", "set_again", "retired"


@dataclass(frozen=True)
class Asked:
    """What a workload file asks for; ``origin`` is the file, from its project folder.

    ``verify`` is given the spec and looks whether production could train it, before anything is
    uploaded; it raises InvalidInputError, and is called for what has changed only.
    """

    package: Package
    origin: str
    verify: Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class How:
    """Who registers, and what they insist on."""

    by: str
    take_over: bool = False
    again: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Registered:
    """What became of one workload; ``replaces`` names what else the name stood for.

    ``still_on`` is the candidate of a retired workload's flag that is on all the same.
    """

    what: str
    registration: Registration
    changes: tuple[Change, ...] = ()
    uploaded: int = 0
    replaces: str | None = None
    still_on: str | None = None


def register(asked: Asked, *, services: Services, schedules: Schedules, how: How) -> Registered:
    """Let production train this workload from now on; repeating it changes nothing.

    Raises InvalidInputError for a name that is another owner's, and for inputs that are not
    there.
    """
    store = services.store
    shipment = prepare(asked.package, store.bucket)
    wanted = _wanted(asked, shipment, schedules)
    current = _current(store, wanted.workload)
    same = current is not None and current.says_the_same(wanted)
    if current is not None and same and current.settled and not how.again:
        return Registered(UNCHANGED, current)
    if current is not None and not how.take_over:
        _check_owner(current, wanted)
    asked.verify(shipment.spec)
    found = Registered(
        what=_what(current, wanted),
        registration=wanted,
        changes=tuple(_changes(current, wanted, shipment, store)),
        replaces=_replaces(current, wanted),
    )
    if how.dry_run:
        return found
    uploaded = upload(shipment, store)
    claimed = _claim(wanted, found.changes, how, services)
    return replace(found, uploaded=uploaded, registration=_settle(claimed, services, schedules))


def retire(workload: str, *, services: Services, schedules: Schedules, how: How) -> Registered:
    """Take a workload out of production; its history, flag and evidence stay.

    A trial that waits for production's runs is told. Raises NotFoundError for a workload that
    never was registered.
    """
    current = load_registration(services.store, workload)
    if not current.active and current.settled and not how.again:
        if not how.dry_run:  # the attempt that retired it may have died before it had told
            end_carried(workload, services=services)
        return Registered(UNCHANGED, current)
    wanted = replace(current, active=False)
    if not how.dry_run:
        wanted = _settle(_claim(wanted, (), how, services), services, schedules)
        end_carried(workload, services=services)
    flag, _ = latest_flag(workload, services)
    return Registered(RETIRED, wanted, still_on=flag.candidate if flag.enabled else None)


def load_registration(store: ObjectStore, workload: str) -> Registration:
    """What production trains of a workload, retired ones too.

    Raises NotFoundError for one that never was registered, InvalidInputError for a document
    that cannot be read.
    """
    key = naming.registration_key(workload)
    try:
        body = store.get(key)
    except NotFoundError as error:
        raise NotFoundError(
            f"{workload} is not registered. Fix: register its file with `compilegate register`."
        ) from error
    try:
        return Registration.from_dict(json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be read as a registration: {error}",
            file=f"s3://{store.bucket}/{key}",
            fix="register the workload's file again",
        ) from error


def _wanted(asked: Asked, shipment: Shipment, schedules: Schedules) -> Registration:
    workload = asked.package.workload
    return Registration(
        workload=workload.name,
        spec_key=shipment.spec_key,
        source_digest=asked.package.source_digest,
        schedule=workload.schedule.cron,
        timezone=workload.schedule.timezone,
        owner=workload.owner,
        origin=asked.origin,
        target=schedules.target,
    )


def _current(store: ObjectStore, workload: str) -> Registration | None:
    """What is registered; a document that cannot be read is replaced like none."""
    try:
        return load_registration(store, workload)
    except (NotFoundError, InvalidInputError):
        return None


def _check_owner(current: Registration, wanted: Registration) -> None:
    if current.owner is None or current.owner == wanted.owner:
        return
    place = f" from {current.origin}" if current.origin else ""
    raise InvalidInputError(
        f"is registered by the owner {current.owner}{place}, and this file's owner is "
        f"{wanted.owner or 'not named'}",
        field="name",
        value=wanted.workload,
        fix="choose another name; to replace that workload, and go on with its flag and history, "
        "use --take-over",
    )


def _what(current: Registration | None, wanted: Registration) -> str:
    if current is None:
        return NEW
    if not current.says_the_same(wanted):
        return UPDATED if current.active else REVIVED
    return SET_AGAIN if current.settled else COMPLETED


def _replaces(current: Registration | None, wanted: Registration) -> str | None:
    """The other source that the name stood for, None where it is the same one."""
    if current is None or (current.origin, current.owner) == (wanted.origin, wanted.owner):
        return None
    owner = f" of {current.owner}" if current.owner else ""
    return f"{current.origin or 'an unknown file'}{owner}"


def _changes(
    current: Registration | None, wanted: Registration, shipment: Shipment, store: ObjectStore
) -> list[Change]:
    if current is None:
        return []
    found = []
    before = _spec(store, current.spec_key)
    if current.spec_key != wanted.spec_key:
        # The source's digest tells more than what is made of it.
        made = {"source_key": None, "code_digest": None}
        after, before_it = {**shipment.spec, **made}, {**before, **made}
        found += [
            replace(change, field=change.field.removeprefix("workload."))
            for change in changes(before_it, after)
        ]
    if current.source_digest != wanted.source_digest:
        own_code = before.get("code_digest") != shipment.spec.get("code_digest")
        part = "source" if own_code or not before.get("code_digest") else "recorder"
        found.append(Change(part, current.source_digest, wanted.source_digest))
    if current.origin != wanted.origin:
        found.append(Change("file", current.origin, wanted.origin))
    if current.target != wanted.target:
        found.append(Change("deployment", current.target, wanted.target))
    return found


def _spec(store: ObjectStore, key: str) -> Mapping[str, Any]:
    """As it is stored: an earlier release's workload need not be one any more."""
    try:
        document = json.loads(store.get(key))
    except (NotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _claim(
    wanted: Registration, made: tuple[Change, ...], how: How, services: Services
) -> Registration:
    """Append what is meant to the ledger, unless that is what its latest entry says.

    Returns what the entry says, with its revision.
    """
    while True:
        latest = _latest(wanted.workload, services)
        if latest is not None and latest.says_the_same(wanted):
            return latest
        if latest is not None and not how.take_over:
            _check_owner(latest, wanted)  # somebody else may have been faster
        revision = 1 if latest is None else latest.revision + 1
        entry = {
            "kind": wanted.kind,
            "at": services.clock.now(),
            "by": how.by,
            "revision": revision,
            "changes": [asdict(change) for change in made],
            "registration": replace(wanted, revision=revision, settled=True).to_dict(),
        }
        sort_key = ledger_keys.registered_entry(revision)
        written = services.ledger.put_once(wanted.workload, sort_key, entry)
        claimed = Registration.from_dict(written["registration"])
        if claimed.says_the_same(wanted):
            return claimed


def _settle(claimed: Registration, services: Services, schedules: Schedules) -> Registration:
    """Bring registration and schedule to what the ledger says, until it says nothing newer."""
    workload = claimed.workload
    key = naming.registration_key(workload)
    while True:
        services.store.put(key, to_json(replace(claimed, settled=False).to_dict()))
        if claimed.active and claimed.schedule is not None:
            schedules.put(workload, claimed.schedule, claimed.timezone)
        else:
            schedules.remove(workload)
        services.store.put(key, to_json(claimed.to_dict()))
        latest = _latest(workload, services)
        if latest is None or latest == claimed:
            return claimed
        claimed = latest


def _latest(workload: str, services: Services) -> Registration | None:
    found = services.ledger.entries(workload, ledger_keys.REGISTERED_ENTRIES)
    return Registration.from_dict(found[-1]["registration"]) if found else None
