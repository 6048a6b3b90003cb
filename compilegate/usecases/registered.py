"""Reads the registration of a workload, the spec that it names and the facts that apply to it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from compilegate.domain import errors, naming
from compilegate.domain.facts import Facts
from compilegate.domain.production.registration import Registration, read_registration
from compilegate.domain.workload.model import Workload
from compilegate.facts import load_facts
from compilegate.ports import ObjectStore, Settings
from compilegate.usecases.records import Spec, Trial, load_spec, spec_at

# Reading is waiting: so many requests are under way at once. The clients keep as many connections.
AT_ONCE = 32
Result = TypeVar("Result")
Entry = TypeVar("Entry")
logger = logging.getLogger("compilegate")


def load_registered(workload: str, store: ObjectStore) -> Spec:
    """The registered spec, which is what production trains today.

    Raises NotFoundError, InvalidInputError for a retired workload or the spec of another one.
    """
    registration = load_registration(store, workload)
    if not registration.active:
        raise errors.InvalidInputError(
            "was retired from production",
            field="workload",
            value=workload,
            fix="register its file again with `compilegate register`",
        )
    return spec_at(store, registration.spec_key, of=workload)


def load_registration(store: ObjectStore, workload: str) -> Registration:
    """What production trains of a workload, retired ones too.

    Raises NotFoundError for one that never was registered, InvalidInputError for a document
    that cannot be read.
    """
    key = naming.registration_key(workload)
    try:
        body = store.get(key)
    except errors.NotFoundError as error:
        raise errors.NotFoundError(
            f"{workload} is not registered", fix="register its file with `compilegate register`."
        ) from error
    try:
        return read_registration(json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise errors.InvalidInputError(
            f"cannot be read as a registration: {error}",
            file=f"s3://{store.bucket}/{key}",
            fix="register the workload's file again",
        ) from error


def workload_names(store: ObjectStore) -> list[str]:
    """Every workload that was ever uploaded, in order of name."""
    return list(store.folders(naming.WORKLOADS_PREFIX))


def for_each_workload(read: Callable[[str], Result], store: ObjectStore) -> list[Result]:
    """``read`` of every workload that was ever uploaded, many at a time, in order of name."""
    return at_once(read, store.folders(naming.WORKLOADS_PREFIX))


def at_once(
    read: Callable[[str], Result], names: Iterable[str], *, most: int = AT_ONCE
) -> list[Result]:
    """``read`` of each of these names, at ``most`` so many at a time, in their order."""
    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(read, names))


def try_each(entries: Iterable[tuple[str, Entry]], act: Callable[[Entry], bool]) -> int:
    """``act`` on every entry; returns on how many it did something.

    What is logged of one that fails is given with it. Raises the last failure once all were tried.
    """
    done, failure = 0, None
    for words, entry in entries:
        try:
            done += act(entry)
        except Exception as error:
            logger.exception(words)
            failure = error
    if failure is not None:
        raise failure
    return done


def deployed_facts(settings: Settings) -> Facts:
    """The shipped and refreshed facts; the deployment overrides them."""
    return load_facts(settings.region).overridden(settings.facts)


def facts_for_workload(workload: Workload, settings: Settings) -> Facts:
    """As ``deployed_facts``; the workload file overrides them."""
    return deployed_facts(settings).overridden(workload.facts)


def owner_of(trial: Trial, store: ObjectStore) -> str | None:
    """The owner of a trial's workload; None where the spec names none or cannot be read.

    A message without an owner still reaches every subscriber without a filter.
    """
    spec = readable_spec(trial, store)
    return spec.workload.owner if spec else None


def readable_spec(trial: Trial, store: ObjectStore) -> Spec | None:
    """The trial's spec for what a message tells; None where it has none or it cannot be read."""
    if not trial.spec_key:
        return None
    try:
        return load_spec(store, trial)
    except (errors.CompilegateError, KeyError, ValueError):
        return None


def owner_of_workload(workload: str, store: ObjectStore) -> str | None:
    """The registered owner; None where it was never registered or that cannot be read."""
    try:
        return load_registration(store, workload).owner
    except (errors.CompilegateError, KeyError, ValueError):
        return None
