"""The week of one owner in a few lines, and the same as figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from compilegate.domain.notification import Notification, command_at
from compilegate.domain.production.week import Span, Week
from compilegate.domain.utc import iso
from compilegate.domain.workload.model import BASELINE
from compilegate.report.formats import money, percent, plural

# Names that a person reads in one line; programs get more, all that fits.
SHOWN, LISTED = 8, 100


def digest(
    owner: str | None, weeks: Sequence[Week], unread: Sequence[str], span: Span, *, stage: str
) -> Notification:
    """The message of one owner; ``unread`` are workloads whose records could not be read."""
    mine = owner or "workloads without an owner"
    runs = sum(sum(week.runs.values()) for week in weeks)
    lines = [
        f"Compilegate {stage}, {_day(span.since)} to {_day(span.until)} (UTC): {mine}",
        "",
        *_lines(weeks, unread),
    ]
    return Notification(
        kind="digest",
        stage=stage,
        subject=f"[compilegate {stage}] {mine}: {plural(runs, 'production run')} this week",
        text="\n".join(lines) + "\n",
        owner=owner,
        figures=_figures(weeks, unread, span),
        act=command_at(f"compilegate digest{f' --owner {owner}' if owner else ''}", stage),
    )


def is_quiet(weeks: Sequence[Week], unread: Sequence[str]) -> bool:
    """Whether nobody needs to hear of this week."""
    return not unread and all(week.quiet for week in weeks)


def _lines(weeks: Sequence[Week], unread: Sequence[str]) -> Iterator[str]:
    if is_quiet(weeks, unread):
        yield f"Nothing ran and nothing changed ({plural(len(weeks), 'workload')})."
        return
    yield _runs(weeks)
    saved = _saved(weeks)
    if saved:
        yield saved
    for opening, names in _open(weeks).items():
        if names:
            yield f"{opening}: {_listed(names)}"
    if unread:
        yield f"Could not be read (the log of weekly-digest says why): {_listed(unread)}"


def _runs(weeks: Sequence[Week]) -> str:
    runs: Counter[str] = Counter()
    for week in weeks:
        for arm, number in week.runs.items():
            runs["baseline" if arm == BASELINE else "with a candidate"] += number
    active = sum(bool(week.runs) for week in weeks)
    text = f"{plural(sum(runs.values()), 'production run')} of {plural(active, 'workload')}"
    arms = ", ".join(f"{number} {what}" for what, number in sorted(runs.items()))
    failed, waited = sum(week.failed for week in weeks), sum(week.waited for week in weeks)
    parts = [f"{text}: {arms}" if arms else text]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{waited} waited for capacity"] if waited else []
    return "; ".join(parts) + "."


def _saved(weeks: Sequence[Week]) -> str:
    found = _savings(weeks)
    if found["saved_usd"] is None:
        return ""
    text = f"Saved so far by what was turned on: {money(found['saved_usd'])} over "
    text += plural(found["priced_runs"], "run")
    if found["expected_usd"]:
        share = percent(found["saved_usd"] / found["expected_usd"])
        text += f"; the trials had expected {money(found['expected_usd'])} ({share} of it)"
    return text + "."


def _savings(weeks: Sequence[Week]) -> dict[str, Any]:
    """Sums over workloads; the estimate only of those whose saving is known."""
    known = [week.savings for week in weeks if week.savings and week.savings.saved_usd is not None]
    expected = [saving.expected_usd for saving in known if saving.expected_usd is not None]
    return {
        "saved_usd": sum(saving.saved_usd or 0.0 for saving in known) if known else None,
        "priced_runs": sum(saving.priced_runs for saving in known),
        # A sum that leaves some out would be compared with all of the other.
        "expected_usd": sum(expected) if known and len(expected) == len(known) else None,
    }


def _open(weeks: Sequence[Week]) -> dict[str, list[str]]:
    return {
        "Waits for approval": [week.workload for week in weeks if week.approval],
        "On probation": [_probation(week) for week in weeks if week.state == "probation"],
        "In a trial": [
            f"{week.workload} (carried by production)" if week.canary else week.workload
            for week in weeks
            if week.trial and not week.approval
        ],
        "No longer what was proven": [week.workload for week in weeks if week.state == "stale"],
        "Flag changed": [
            f"{week.workload} ({', '.join(change['action'] for change in week.changes)})"
            for week in weeks
            if week.changes
        ],
    }


def _probation(week: Week) -> str:
    of = f" of {week.probation_runs}" if week.probation_runs else ""
    return f"{week.workload} ({week.candidate}, {week.watched}{of} runs)"


def _figures(weeks: Sequence[Week], unread: Sequence[str], span: Span) -> dict[str, Any]:
    runs: Counter[str] = Counter()
    for week in weeks:
        runs.update(week.runs)
    told = sorted((week for week in weeks if not week.quiet), key=lambda week: week.workload)
    return {
        "since": iso(span.since),
        "until": iso(span.until),
        "workloads": len(weeks),
        "runs": dict(runs),
        "failed": sum(week.failed for week in weeks),
        "waited": sum(week.waited for week in weeks),
        **_savings(weeks),
        "told": [_short(week) for week in told[:LISTED]],
        "told_left_out": max(0, len(told) - LISTED),
        "unread": list(unread[:LISTED]),
        "unread_left_out": max(0, len(unread) - LISTED),
    }


def _short(week: Week) -> dict[str, Any]:
    document = asdict(week)
    return {key: value for key, value in document.items() if value not in (None, (), [], {}, 0)}


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _day(epoch: float) -> str:
    return f"{datetime.fromtimestamp(epoch, tz=UTC):%Y-%m-%d}"
