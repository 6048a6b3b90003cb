"""Registers workloads with production and retires them.

The order makes a crash anywhere harmless: first what the spec names is uploaded, then the ledger
is written, then schedule and registration follow it. A registration marked ``settled`` proves that
all of it was done, so that an unchanged workload costs one read. Of two that register at once, the
later one brings schedule and registration to the ledger's latest entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.registering import (
    RETIRED,
    UNCHANGED,
    Change,
    check_owner,
    next_change,
    outcome_of,
    registration_changes,
    replaced_source,
)
from compilegate.domain.production.registration import Registration, registration_of
from compilegate.ports import Ledger, ObjectStore, Schedules, Services
from compilegate.usecases.canary import end_canary
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.records import to_json
from compilegate.usecases.registered import load_registration
from compilegate.usecases.registration.upload import Package, Shipment, prepare, upload


@dataclass(frozen=True)
class RegistrationRequest:
    """What a workload file asks for; ``origin`` is the file, from its project folder.

    ``verify`` gets the spec and checks whether production could train it, before anything is
    uploaded; it raises InvalidInputError, and is called only where something has changed.
    """

    package: Package
    origin: str
    verify: Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class RegisterOptions:
    """Who registers, and what they insist on."""

    by: str
    take_over: bool = False
    again: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class RegistrationOutcome:
    """The outcome for one workload; ``replaces`` names what else the name stood for.

    ``still_on`` is the candidate of a retired workload's flag that is still on.
    """

    what: str
    registration: Registration
    changes: tuple[Change, ...] = ()
    uploaded: int = 0
    replaces: str | None = None
    still_on: str | None = None


def register(
    request: RegistrationRequest,
    *,
    services: Services,
    schedules: Schedules,
    options: RegisterOptions,
) -> RegistrationOutcome:
    """Let production train this workload from now on; repeating it changes nothing.

    Raises InvalidInputError for a name that is another owner's, and for inputs that are not
    there.
    """
    store = services.store
    shipment = prepare(request.package, store.bucket)
    requested = _requested(request, shipment, schedules)
    current = _current(store, requested.workload)
    same = current is not None and current.says_the_same(requested)
    if current is not None and same and current.settled and not options.again:
        return RegistrationOutcome(UNCHANGED, current)
    if current is not None and not options.take_over:
        check_owner(current, requested)
    request.verify(shipment.spec)
    before = _spec(store, current.spec_key) if current is not None else {}
    registered = RegistrationOutcome(
        what=outcome_of(current, requested),
        registration=requested,
        changes=registration_changes(current, requested, before, shipment.spec),
        replaces=replaced_source(current, requested),
    )
    if options.dry_run:
        return registered
    uploaded = upload(shipment, store)
    claimed = _claim(requested, registered.changes, options, services)
    return replace(registered, uploaded=uploaded, registration=_apply(claimed, services, schedules))


def retire(
    workload: str, *, services: Services, schedules: Schedules, options: RegisterOptions
) -> RegistrationOutcome:
    """Take a workload out of production; its history, flag and evidence stay.

    A trial that waits for production's runs continues. Raises NotFoundError for a workload that
    never was registered.
    """
    current = load_registration(services.store, workload)
    if not current.active and current.settled and not options.again:
        if not options.dry_run:  # the attempt that retired it may have died before this
            end_canary(workload, services=services)
        return RegistrationOutcome(UNCHANGED, current)
    requested = replace(current, active=False)
    if not options.dry_run:
        requested = _apply(_claim(requested, (), options, services), services, schedules)
        end_canary(workload, services=services)
    flag, _ = latest_flag(workload, services)
    return RegistrationOutcome(
        RETIRED, requested, still_on=flag.candidate if flag.enabled else None
    )


def _requested(
    request: RegistrationRequest, shipment: Shipment, schedules: Schedules
) -> Registration:
    workload = request.package.workload
    return Registration(
        workload=workload.name,
        spec_key=shipment.spec_key,
        source_digest=request.package.source_digest,
        schedule=workload.schedule.cron,
        timezone=workload.schedule.timezone,
        owner=workload.owner,
        origin=request.origin,
        target=schedules.target,
    )


def _current(store: ObjectStore, workload: str) -> Registration | None:
    """What is registered; a document that cannot be read is replaced like none."""
    try:
        return load_registration(store, workload)
    except (NotFoundError, InvalidInputError):
        return None


def _spec(store: ObjectStore, key: str) -> Mapping[str, Any]:
    """As it is stored: an earlier release's workload need not be one any more."""
    try:
        document = json.loads(store.get(key))
    except (NotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _claim(
    requested: Registration, made: tuple[Change, ...], options: RegisterOptions, services: Services
) -> Registration:
    """Append what is meant to the ledger, unless that is what its latest entry says.

    Returns what the entry says, with its revision.
    """
    while True:
        latest = _latest(requested.workload, services.ledger)
        if latest is not None and latest.says_the_same(requested):
            return latest
        if latest is not None and not options.take_over:
            check_owner(latest, requested)  # another owner may have been faster
        change = next_change(latest, requested, made, by=options.by, at=services.clock.now())
        claimed = registration_of(services.ledger.put_once(requested.workload, change))
        if claimed.says_the_same(requested):
            return claimed


def _apply(claimed: Registration, services: Services, schedules: Schedules) -> Registration:
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
        latest = _latest(workload, services.ledger)
        if latest is None or latest == claimed:
            return claimed
        claimed = latest


def _latest(workload: str, ledger: Ledger) -> Registration | None:
    revisions = ledger.history(workload, ledger_keys.REGISTERED_ENTRIES).registrations
    return registration_of(revisions[-1]) if revisions else None
