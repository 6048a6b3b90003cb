"""The weekly digest of every owner: reads each registered workload once, many at a time."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.claims import Notification, stated_usd_per_run
from compilegate.domain.errors import NotFoundError
from compilegate.domain.fleet.row import Row
from compilegate.domain.optional import map_optional
from compilegate.domain.production.attempts import RUN_SECONDS
from compilegate.domain.production.history import WorkloadHistory, promotions
from compilegate.domain.production.probation import ON_PROBATION
from compilegate.domain.production.savings import Savings
from compilegate.domain.production.summaries import (
    ExpectedSavings,
    Fleet,
    TimeWindow,
    WorkloadWeek,
    workload_week,
)
from compilegate.ports import ObjectStore, Services, Topic
from compilegate.report.notifications.weekly_digest import digest, is_quiet
from compilegate.usecases import records

logger = logging.getLogger("compilegate")

WEEK_SECONDS = 7 * 24 * 3600


@dataclass
class _Owned:
    """What was read of one owner's workloads."""

    summaries: list[WorkloadWeek] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Digest:
    """One owner's message; a quiet one is not sent."""

    notification: Notification
    quiet: bool


def digests(services: Services, *, owner: str | None = None) -> list[Digest]:
    """The digest of every owner, or of one, over the last seven days.

    A workload whose records cannot be read is named in its owner's digest, and in that of
    workloads without an owner where the owner is unknown as well.
    """
    end = services.clock.now()
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
    made = digests(services)
    loud = [one.notification for one in made if not one.quiet]

    def publish(notification: Notification) -> bool:
        topic.publish(notification)
        return True

    sent = records.try_each(
        ((f"the digest of {one.owner} was not sent", one) for one in loud), publish
    )
    return {"sent": sent, "quiet": len(made) - len(loud)}


def _read_all(services: Services, window: TimeWindow) -> dict[str | None, _Owned]:
    owners: dict[str | None, _Owned] = defaultdict(_Owned)
    rows = {row.workload: row for row in services.fleet.rows().read}
    read_one = partial(_read, rows=rows, services=services, window=window)
    for owner, read in records.at_once(read_one, records.workload_names(services.store)):
        if read != _Owned():
            owners[owner].summaries += read.summaries
            owners[owner].unread += read.unread
    return owners


def _read(
    name: str, rows: Mapping[str, Row], services: Services, window: TimeWindow
) -> tuple[str | None, _Owned]:
    """One workload's owner and week, or its name where the week cannot be read.

    Nothing of a workload that production does not train, nor did this week. Its row says what was
    saved before, so that only runs of this week are read, however long they took.
    """
    try:
        registration = records.load_registration(services.store, name)
    except NotFoundError:
        return None, _Owned()  # uploaded for a trial alone
    except Exception:
        logger.exception("%s: its registration cannot be read", name)
        return None, _Owned(unread=[name])
    owner, row = registration.owner, rows.get(name)
    try:
        since = -math.inf if row is None else window.since - RUN_SECONDS
        history = services.ledger.history(name, since=since)
        if history.flag.state == ON_PROBATION and not history.reviews:
            history = services.ledger.history(name)  # how many runs the last review had counted
        expected = _expected(name, history, registration.spec_key, services.store)
        summary = workload_week(name, history, window, owner=owner, expected=expected)
        if row is not None and expected is not None:
            summary = replace(summary, savings=_saved(row, expected))
    except Exception:
        logger.exception("%s: its week cannot be read", name)
        return owner, _Owned(unread=[name])
    return owner, _Owned([summary] if registration.active or summary.runs else [])


def _saved(row: Row, expected: ExpectedSavings) -> Savings:
    """What was saved so far, beside what trials expected of as many runs if all expected the same.

    A run that failed counts among the compared ones, with what it cost.
    """
    saved, usd = row.saved, set(expected.usd_per_run.values())
    per_run = usd.pop() if len(usd) == 1 else None
    return Savings(
        runs=saved.runs + saved.unknown,
        compared_runs=saved.runs,
        unknown_runs=saved.unknown,
        priced_runs=saved.runs,
        micro_usd=saved.micro_usd,
        se_micro_usd=saved.se_micro_usd,
        baseline_at=row.baseline_at,
        expected_usd=map_optional(per_run, lambda usd: usd * saved.runs),
    )


def _expected(
    name: str, history: WorkloadHistory, spec_key: str, store: ObjectStore
) -> ExpectedSavings | None:
    """What the promotions' trials expected; no missing or unreadable record drops the week."""
    turned_on = promotions(history.flags)
    if not turned_on:
        return None
    probation_runs = None
    try:
        probation_runs = records.spec_at(store, spec_key, of=name).workload.policy.probation_runs
    except (NotFoundError, *records.UNREADABLE):
        pass
    decisions = {
        trial: records.find_decision(store, naming.record_key(name, trial, "decision"))
        for trial in {str(one.trial) for one in turned_on}
    }
    usd = {trial: stated_usd_per_run(one) if one else None for trial, one in decisions.items()}
    return ExpectedSavings(usd, probation_runs)
