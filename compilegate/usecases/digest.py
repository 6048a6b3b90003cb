"""The weekly digest of every owner: reads each registered workload once, many at a time."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

from compilegate.domain import naming
from compilegate.domain.errors import NotFoundError
from compilegate.domain.notification import Notification
from compilegate.domain.production.week import Promised, Span, Week, promoting_trials, week_of
from compilegate.ports import Services, Topic
from compilegate.report.digest import digest, is_quiet
from compilegate.usecases.registration import load_registration
from compilegate.usecases.trial import Trial, load_record, load_spec

logger = logging.getLogger("compilegate")

WEEK_SECONDS = 7 * 24 * 3600
# Reading is waiting: so many requests are under way at once. The clients keep as many connections.
AT_ONCE = 32


@dataclass
class _Owned:
    """What was read of one owner's workloads."""

    weeks: list[Week] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Digest:
    """One owner's message; a quiet one is not sent."""

    notification: Notification
    quiet: bool


def digests(
    services: Services, *, until: float | None = None, owner: str | None = None
) -> list[Digest]:
    """The digest of every owner, or of one, over the seven days before ``until`` (epoch seconds).

    A workload whose records cannot be read is named in its owner's digest, and in that of nobody's
    workloads where even the owner is not known.
    """
    end = services.clock.now() if until is None else until
    span = Span(end - WEEK_SECONDS, end)
    found = _read_all(services, span)
    wanted = found if owner is None else {owner: found.get(owner, _Owned())}
    stage = services.settings.stage
    return [
        Digest(
            notification=digest(name, owned.weeks, sorted(owned.unread), span, stage=stage),
            quiet=is_quiet(owned.weeks, owned.unread),
        )
        for name, owned in sorted(wanted.items(), key=lambda item: item[0] or "")
    ]


def send_digests(_event: Mapping[str, Any], *, services: Services, topic: Topic) -> dict[str, Any]:
    """Publish every digest that tells something; one that fails does not keep back the others.

    Raises the last failure once all were tried, so that an alarm tells of it.
    """
    sent, quiet, failure = 0, 0, None
    for found in digests(services):
        if found.quiet:
            quiet += 1
            continue
        try:
            topic.publish(found.notification)
            sent += 1
        except Exception as error:
            logger.exception("the digest of %s was not sent", found.notification.owner)
            failure = error
    if failure is not None:
        raise failure
    return {"sent": sent, "quiet": quiet}


def _read_all(services: Services, span: Span) -> dict[str | None, _Owned]:
    owners: dict[str | None, _Owned] = defaultdict(_Owned)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        names = services.store.folders(naming.WORKLOADS_PREFIX)
        for read in pool.map(lambda name: _read(name, services, span), names):
            if isinstance(read, Week):
                owners[read.owner].weeks.append(read)
            elif read is not None:
                owners[read.owner].unread.append(read.workload)
    return owners


@dataclass(frozen=True)
class _Unread:
    workload: str
    owner: str | None


def _read(name: str, services: Services, span: Span) -> Week | _Unread | None:
    """One workload's week; None for one that production does not train, nor did this week."""
    try:
        registration = load_registration(services.store, name)
    except NotFoundError:
        return None  # uploaded for a trial alone
    except Exception:
        logger.exception("%s: its registration cannot be read", name)
        return _Unread(name, None)
    owner = registration.owner
    try:
        entries = services.ledger.entries(name)
        promised = _promised(name, promoting_trials(entries), registration.spec_key, services)
        week = week_of(name, entries, span, owner=owner, promised=promised)
    except Exception:
        logger.exception("%s: its week cannot be read", name)
        return _Unread(name, owner)
    return week if registration.active or week.runs else None


def _promised(
    name: str, trials: Sequence[str], spec_key: str, services: Services
) -> Promised | None:
    """What the promotions' trials expected; without their records the week is told all the same."""
    if not trials:
        return None
    latest = Trial(name, trials[-1], spec_key)
    try:
        probation_runs = load_spec(services.store, latest).workload.policy.probation_runs
    except (NotFoundError, KeyError, json.JSONDecodeError):
        probation_runs = None
    expected = {trial: _expected(Trial(name, trial, spec_key), services) for trial in trials}
    return Promised(expected, probation_runs)


def _expected(trial: Trial, services: Services) -> float | None:
    """USD that a run of a trial's candidate was expected to save."""
    try:
        saving = load_record(services.store, trial, "decision").get("saving") or {}
    except (NotFoundError, json.JSONDecodeError):
        return None
    return cast("float | None", saving.get("usd_per_run"))
