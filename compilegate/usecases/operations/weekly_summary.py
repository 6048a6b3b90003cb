"""The weekly digest of every owner: reads each registered workload once, many at a time."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.claims import Notification, stated_usd_per_run
from compilegate.domain.errors import NotFoundError
from compilegate.domain.production.summaries import (
    ExpectedSavings,
    Fleet,
    TimeWindow,
    WeeklySummary,
    promoting_trials,
    weekly_summary,
)
from compilegate.ports import ObjectStore, Services, Topic
from compilegate.report.notifications.weekly_summary import digest, is_quiet
from compilegate.usecases.records import UNREADABLE, Trial, find_decision, load_spec
from compilegate.usecases.registered import for_each_workload, load_registration

logger = logging.getLogger("compilegate")

WEEK_SECONDS = 7 * 24 * 3600


@dataclass
class _Owned:
    """What was read of one owner's workloads."""

    summaries: list[WeeklySummary] = field(default_factory=list)
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

    A workload whose records cannot be read is named in its owner's digest, and in that of
    workloads without an owner where the owner is unknown as well.
    """
    end = services.clock.now() if until is None else until
    window = TimeWindow(end - WEEK_SECONDS, end)
    owners = _read_all(services, window)
    chosen = owners if owner is None else {owner: owners.get(owner, _Owned())}
    stage = services.settings.stage
    return [
        Digest(
            notification=digest(name, owned.summaries, sorted(owned.unread), window, stage=stage),
            quiet=is_quiet(owned.summaries, owned.unread),
        )
        for name, owned in sorted(chosen.items(), key=lambda item: item[0] or "")
    ]


def fleet(services: Services, *, owner: str | None = None) -> Fleet:
    """Every workload that production trains, or one owner's, with its last seven days."""
    end = services.clock.now()
    window = TimeWindow(end - WEEK_SECONDS, end)
    owned = [each for name, each in _read_all(services, window).items() if owner in (None, name)]
    return Fleet(
        stage=services.settings.stage,
        window=window,
        summaries=[one for each in owned for one in each.summaries],
        unread=[name for each in owned for name in each.unread],
        simulated=services.settings.simulated,
    )


def send_digests(_event: Mapping[str, Any], *, services: Services, topic: Topic) -> dict[str, Any]:
    """Publish every digest that is not quiet; one that fails does not keep back the others.

    Raises the last failure once all were tried, so that it sets off an alarm.
    """
    sent, quiet, failure = 0, 0, None
    for one in digests(services):
        if one.quiet:
            quiet += 1
            continue
        try:
            topic.publish(one.notification)
            sent += 1
        except Exception as error:
            logger.exception("the digest of %s was not sent", one.notification.owner)
            failure = error
    if failure is not None:
        raise failure
    return {"sent": sent, "quiet": quiet}


def _read_all(services: Services, window: TimeWindow) -> dict[str | None, _Owned]:
    owners: dict[str | None, _Owned] = defaultdict(_Owned)
    for read in for_each_workload(lambda name: _read(name, services, window), services.store):
        if isinstance(read, WeeklySummary):
            owners[read.owner].summaries.append(read)
        elif read is not None:
            owners[read.owner].unread.append(read.workload)
    return owners


@dataclass(frozen=True)
class _Unread:
    workload: str
    owner: str | None


def _read(name: str, services: Services, window: TimeWindow) -> WeeklySummary | _Unread | None:
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
        past = services.ledger.history(name)
        expected = _expected(name, promoting_trials(past), registration.spec_key, services.store)
        summary = weekly_summary(name, past, window, owner=owner, expected=expected)
    except Exception:
        logger.exception("%s: its week cannot be read", name)
        return _Unread(name, owner)
    return summary if registration.active or summary.runs else None


def _expected(
    name: str, trials: Sequence[str], spec_key: str, store: ObjectStore
) -> ExpectedSavings | None:
    """What the promotions' trials expected; no missing or unreadable record drops the week."""
    if not trials:
        return None
    latest = Trial(name, trials[-1], spec_key)
    try:
        probation_runs = load_spec(store, latest).workload.policy.probation_runs
    except (NotFoundError, *UNREADABLE):
        probation_runs = None
    usd = {trial: _expected_usd(Trial(name, trial, spec_key), store) for trial in trials}
    return ExpectedSavings(usd, probation_runs)


def _expected_usd(trial: Trial, store: ObjectStore) -> float | None:
    """USD that a run of a trial's candidate was expected to save."""
    decision = find_decision(store, trial.record_key("decision"))
    return stated_usd_per_run(decision) if decision else None
