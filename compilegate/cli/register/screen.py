"""The screen of ``register``: a line per workload that changed, then a summary."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from compilegate.cli.common.error_handling import explain
from compilegate.cli.common.output import error_text, say, say_line
from compilegate.cli.register.many import Result
from compilegate.domain.errors import shown
from compilegate.domain.formats import plural
from compilegate.domain.production.registration import Change, Registration
from compilegate.usecases.registration.register import UNCHANGED, Registered

WORDS = {
    "new": "new", "updated": "updated", "revived": "registered again", "retired": "retired",
    "completed": "completed an interrupted registration", "set_again": "recreated",
    "unchanged": "unchanged", "failed": "failed",
}  # fmt: skip
# At most this many changed fields are named; the JSON document names all.
MOST_NAMED = 6
# Longer values are not shown.
LONGEST_VALUE = 40


def show(result: Result, *, also_unchanged: bool, local: bool = False) -> None:
    """One workload's line; a failure goes to standard error."""
    if result.registered is None:
        message = explain(result.error) if result.error else "failed"
        if result.subject not in message:
            message = f"{result.subject}: {message}"
        sys.stderr.write(f"{error_text(message)}\n")
    elif also_unchanged or result.what != UNCHANGED:
        say(line(result.registered), hang=4)
        if result.registered.still_on:
            name = result.registered.registration.workload
            off = f'compilegate flag revert {name} --reason "retired"{" --local" if local else ""}'
            say_line(f"    To turn it off: {off}")
    sys.stdout.flush()


def line(registered: Registered) -> str:
    """``name: what, when it runs, what differs``."""
    registration = registered.registration
    parts = [f"{registration.workload}: {_what(registered)}"]
    if registration.active and registered.what != UNCHANGED:
        parts.append(_when(registration))
    parts += _differs(registered)
    if registered.replaces:
        parts.append(f"in place of {registered.replaces}")
    if registered.still_on:
        parts.append(f"its flag stays on ({registered.still_on})")
    if registered.uploaded:
        parts.append(f"{plural(registered.uploaded, 'object')} uploaded")
    return "; ".join(parts)


def summary(counts: Mapping[str, int], *, dry_run: bool) -> str:
    """The number of workloads by outcome."""
    parts = [f"{counts[what]} {WORDS[what]}" for what in WORDS if counts.get(what)]
    end = " Dry run: nothing was changed." if dry_run else ""
    return f"{plural(sum(counts.values()), 'workload')}: {', '.join(parts)}.{end}"


def _what(registered: Registered) -> str:
    if registered.what == UNCHANGED and not registered.registration.active:
        return "already retired"
    return WORDS[registered.what]


def _when(registration: Registration) -> str:
    if registration.schedule is None:
        return "no schedule"
    return f"runs {registration.schedule}, {registration.timezone}"


def _differs(registered: Registered) -> list[str]:
    named = [_change(change) for change in registered.changes[:MOST_NAMED]]
    more = len(registered.changes) - len(named)
    return [*named, f"{more} more fields"] if more > 0 else named


def _change(change: Change) -> str:
    values = [shown(value) for value in (change.before, change.after)]
    if max(map(len, values)) > LONGEST_VALUE:
        return f"{change.field} changed"
    return f"{change.field} {values[0]} -> {values[1]}"
