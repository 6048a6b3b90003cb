"""The week of one owner in a few lines, and the same as figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from compilegate.domain.claims import FLAG_STATES, Notification, command_at, subject_line
from compilegate.domain.formats import plural
from compilegate.domain.optional import without_none
from compilegate.domain.production.summaries import TimeWindow, WorkloadWeek
from compilegate.domain.utc import day, iso
from compilegate.domain.workload.model import BASELINE
from compilegate.report import wording

say = partial(wording.say, "week")

# Names that a person reads in one line; programs get more, all that fits.
SHOWN, LISTED = 8, 100


def digest(
    owner: str | None,
    summaries: Sequence[WorkloadWeek],
    unread: Sequence[str],
    window: TimeWindow,
    *,
    stage: str,
) -> Notification:
    """The message of one owner; ``unread`` are workloads whose records could not be read."""
    mine = owner or "workloads without an owner"
    runs = sum(sum(summary.runs.values()) for summary in summaries)
    lines = [
        f"Compilegate {stage}, {day(window.since)} to {day(window.until)} (UTC): {mine}",
        "",
        *_lines(summaries, unread),
    ]
    return Notification(
        kind="digest",
        stage=stage,
        subject=subject_line(stage, f"{mine}: {plural(runs, 'production run')} this week"),
        text="\n".join(lines) + "\n",
        owner=owner,
        figures=_figures(summaries, unread, window),
        act=command_at(f"compilegate digest{f' --owner {owner}' if owner else ''}", stage),
    )


def is_quiet(summaries: Sequence[WorkloadWeek], unread: Sequence[str]) -> bool:
    """Whether there is nothing to send about the week."""
    return not unread and all(summary.quiet for summary in summaries)


def _lines(summaries: Sequence[WorkloadWeek], unread: Sequence[str]) -> Iterator[str]:
    if is_quiet(summaries, unread):
        yield say("quiet", workloads=len(summaries))
        return
    arms: Counter[str] = Counter()
    for summary in summaries:
        for arm, number in summary.runs.items():
            arms["baseline" if arm == BASELINE else "with a candidate"] += number
    yield say(
        "runs",
        runs=sum(arms.values()),
        workloads=sum(bool(summary.runs) for summary in summaries),
        arms=", ".join(f"{number} {what}" for what, number in sorted(arms.items())),
        failed=sum(summary.failed for summary in summaries) or None,
        waited=sum(summary.waited for summary in summaries) or None,
    )
    totals = _savings(summaries)
    saved, expected = totals["saved_usd"], totals["expected_usd"]
    if saved is not None:
        share = saved / expected if expected else None
        runs = totals["priced_runs"]
        yield say("saved", usd=saved, runs=runs, expected=expected, share=share)
    for opening, names in _open(summaries).items():
        if names:
            yield f"{opening}: {_listed(names)}"
    if unread:
        yield say("unread", names=_listed(unread))


def _savings(summaries: Sequence[WorkloadWeek]) -> dict[str, Any]:
    """Sums over workloads; the estimate only of those whose saving is known."""
    savings = [
        summary.savings
        for summary in summaries
        if summary.savings and summary.savings.saved_usd is not None
    ]
    expected = without_none(saving.expected_usd for saving in savings)
    return {
        "saved_usd": sum(saving.saved_usd or 0.0 for saving in savings) if savings else None,
        "priced_runs": sum(saving.priced_runs for saving in savings),
        # A sum that leaves some out would be compared with all of the other.
        "expected_usd": sum(expected) if savings and len(expected) == len(savings) else None,
    }


def _open(summaries: Sequence[WorkloadWeek]) -> dict[str, list[str]]:
    """What is in progress or needs attention, by what it is."""
    probation = FLAG_STATES["probation"].text
    lists: dict[str, list[str]] = {
        "Waits for approval": [], probation: [], "In a trial": [],
        "Changed since the proof": [], "Flag changed": [],
    }  # fmt: skip
    for summary in summaries:
        if summary.approval:
            lists["Waits for approval"].append(summary.workload)
        elif summary.trial:
            canary = " (with canary runs)" if summary.canary else ""
            lists["In a trial"].append(f"{summary.workload}{canary}")
        if summary.state == "probation":
            of = f" of {summary.probation_runs}" if summary.probation_runs else ""
            runs = f"{summary.candidate}, {summary.watched}{of} runs"
            lists[probation].append(f"{summary.workload} ({runs})")
        elif summary.state == "stale":
            lists["Changed since the proof"].append(summary.workload)
        if summary.changes:
            actions = ", ".join(change.action for change in summary.changes)
            lists["Flag changed"].append(f"{summary.workload} ({actions})")
    return lists


def _figures(
    summaries: Sequence[WorkloadWeek], unread: Sequence[str], window: TimeWindow
) -> dict[str, Any]:
    runs: Counter[str] = Counter()
    for summary in summaries:
        runs.update(summary.runs)
    active = sorted(
        (summary for summary in summaries if not summary.quiet),
        key=lambda summary: summary.workload,
    )
    return {
        "since": iso(window.since),
        "until": iso(window.until),
        "workloads": len(summaries),
        "runs": dict(runs),
        "failed": sum(summary.failed for summary in summaries),
        "waited": sum(summary.waited for summary in summaries),
        **_savings(summaries),
        "active": [_of_workload(one) for one in active[:LISTED]],
        "active_left_out": max(0, len(active) - LISTED),
        "unread": list(unread[:LISTED]),
        "unread_left_out": max(0, len(unread) - LISTED),
    }


def _of_workload(week: WorkloadWeek) -> dict[str, Any]:
    """What there is to say of it."""
    document = {**asdict(week), "savings": week.savings.to_dict() if week.savings else None}
    return {key: value for key, value in document.items() if value not in (None, (), [], {}, 0)}


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
