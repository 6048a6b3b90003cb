"""Registers workloads with production and retires them.

The order makes a crash anywhere harmless: first what the spec names is uploaded, then the ledger
is written, then schedule and registration follow it. A registration marked ``complete`` proves that
all of it was done, so that an unchanged workload costs one read. Of two that register at once, the
later one brings schedule and registration to the ledger's latest entry.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from compilegate.domain import ledger_keys, naming
from compilegate.domain.codec import write
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.notes import Note, note_documents
from compilegate.domain.production import registration as registering
from compilegate.domain.workload.model import Workload
from compilegate.ports import Ledger, ObjectStore, Schedules, Services
from compilegate.usecases.canary import end_canary
from compilegate.usecases.flag.change_flag import latest_flag
from compilegate.usecases.records import Trial, find_json, load_registration, to_json

# Brings a workload to the cloud: source bundle, local inputs, and the spec that names them.
#
# Everything lies under the digest of its contents, so what is there already is left there.

DIGEST_LENGTH = 12
GZIP = "application/gzip"
BINARY = "application/octet-stream"
JSON = "application/json"


@dataclass(frozen=True)
class InputFile:
    """One file of a channel: its name there, its SHA-256, and how to open it."""

    name: str
    sha256: str
    open: Callable[[], BinaryIO]


@dataclass(frozen=True)
class Package:
    """A workload with what has to be uploaded for it; ``inputs`` by channel.

    ``code_digest`` is of the team's own part of the source, None where it is unknown.
    ``notes`` are remarks about the job. ``origin`` is a trial's workload file, as a
    command names it.
    """

    workload: Workload
    source: bytes
    source_digest: str
    inputs: Mapping[str, tuple[InputFile, ...]]
    code_digest: str | None = None
    notes: tuple[Note, ...] = ()
    origin: str | None = None


@dataclass(frozen=True)
class Upload:
    """One object, and how to open what it is made from."""

    key: str
    open: Callable[[], BinaryIO]
    content_type: str


@dataclass(frozen=True)
class Shipment:
    """What has to lie in the bucket before anything can start from ``spec_key``."""

    spec_key: str
    spec: Mapping[str, object]
    uploads: tuple[Upload, ...]


def submit(package: Package, *, trial: str, store: ObjectStore) -> Trial:
    """Upload the package; returns the trial that an execution can start from."""
    shipment = prepare(package, store.bucket)
    upload(shipment, store)
    return Trial(package.workload.name, trial, shipment.spec_key)


def prepare(package: Package, bucket: str) -> Shipment:
    """Everything that the package is in the bucket, the spec last; uploads nothing."""
    workload = package.workload
    source_key = naming.source_key(workload.name, package.source_digest)
    uploads = [Upload(source_key, lambda: io.BytesIO(package.source), GZIP)]
    inputs = dict(workload.training.inputs)
    for channel, files in sorted(package.inputs.items()):
        # A channel's files lie together, under one digest of them all.
        listing = "\n".join(f"{file.sha256} {file.name}" for file in files)
        prefix = naming.input_prefix(workload.name, channel, _digest(listing.encode()))
        inputs[channel] = f"s3://{bucket}/{prefix}"
        uploads += [Upload(prefix + file.name, file.open, BINARY) for file in files]
    placed = replace(workload, training=replace(workload.training, inputs=inputs))
    spec = {"workload": placed.to_dict(), "source_key": source_key}
    named = {"code_digest": package.code_digest, "origin": package.origin}
    spec |= {name: text for name, text in named.items() if text}
    spec |= note_documents(package.notes)
    body = to_json(spec)
    spec_key = naming.spec_key(workload.name, _digest(body))
    uploads.append(Upload(spec_key, lambda: io.BytesIO(body), JSON))
    return Shipment(spec_key, spec, tuple(uploads))


def upload(shipment: Shipment, store: ObjectStore) -> int:
    """Put what is not there yet; returns how many objects that were."""
    missing = [item for item in shipment.uploads if not store.has(item.key)]
    for item in missing:
        with item.open() as stream:
            store.put_stream(item.key, stream, item.content_type)
    return len(missing)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGEST_LENGTH]


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
    repair: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class RegistrationOutcome:
    """The outcome for one workload; ``replaces`` names what else the name stood for.

    ``still_on`` is the candidate of a retired workload's flag that is still on.
    """

    what: str
    registration: registering.Registration
    changes: tuple[registering.Change, ...] = ()
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
    store, workload = services.store, request.package.workload
    shipment = prepare(request.package, store.bucket)
    requested = registering.Registration(
        workload=workload.name,
        spec_key=shipment.spec_key,
        source_digest=request.package.source_digest,
        schedule=workload.schedule.cron,
        timezone=workload.schedule.timezone,
        owner=workload.owner,
        origin=request.origin,
        target=schedules.target,
    )
    try:
        current = load_registration(store, workload.name)
    except (NotFoundError, InvalidInputError):
        # A document that cannot be read is replaced like none.
        current = registering.NOT_REGISTERED
    if current.says_the_same(requested) and current.complete and not options.repair:
        return RegistrationOutcome(registering.UNCHANGED, current)
    if not options.take_over:
        registering.check_owner(current, requested)
    request.verify(shipment.spec)
    # As it is stored: an earlier release's workload need not be one any more.
    before = find_json(store, current.spec_key) if current.spec_key else {}
    registered = RegistrationOutcome(
        what=registering.outcome_of(current, requested),
        registration=requested,
        changes=registering.registration_changes(
            current, requested, before if isinstance(before, dict) else {}, shipment.spec
        ),
        replaces=registering.replaced_source(current, requested),
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
    if not current.active and current.complete and not options.repair:
        if not options.dry_run:  # the attempt that retired it may have died before this
            end_canary(workload, services=services)
        return RegistrationOutcome(registering.UNCHANGED, current)
    requested = replace(current, active=False)
    if not options.dry_run:
        requested = _apply(_claim(requested, (), options, services), services, schedules)
        end_canary(workload, services=services)
    flag, _ = latest_flag(workload, services)
    return RegistrationOutcome(
        registering.RETIRED, requested, still_on=flag.candidate if flag.enabled else None
    )


def _claim(
    requested: registering.Registration,
    made: tuple[registering.Change, ...],
    options: RegisterOptions,
    services: Services,
) -> registering.Registration:
    """Append what is meant to the ledger, unless that is what its latest entry says.

    Returns what the entry says, with its revision.
    """
    while True:
        latest = _latest(requested.workload, services.ledger)
        if latest.says_the_same(requested):
            return latest
        if not options.take_over:
            registering.check_owner(latest, requested)  # another owner may have been faster
        change = registering.next_change(
            latest, requested, made, by=options.by, at=services.clock.now()
        )
        written = services.ledger.put_once(requested.workload, change)
        claimed = registering.read_registration(written.document or {})
        if claimed.says_the_same(requested):
            return claimed


def _apply(
    claimed: registering.Registration, services: Services, schedules: Schedules
) -> registering.Registration:
    """Bring registration and schedule to what the ledger says, until it says nothing newer."""
    workload = claimed.workload
    key = naming.registration_key(workload)
    while True:
        services.store.put(key, to_json(write(replace(claimed, complete=False))))
        if claimed.active and claimed.schedule is not None:
            schedules.put(workload, claimed.schedule, claimed.timezone)
        else:
            schedules.remove(workload)
        services.store.put(key, to_json(write(claimed)))
        latest = _latest(workload, services.ledger)
        if latest == claimed:
            return claimed
        claimed = latest


def _latest(workload: str, ledger: Ledger) -> registering.Registration:
    revisions = ledger.history(workload, ledger_keys.REGISTERED_ENTRIES).registrations
    if not revisions:
        return registering.NOT_REGISTERED
    return registering.read_registration(revisions[-1].document or {})
