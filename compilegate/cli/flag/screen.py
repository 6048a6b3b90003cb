"""A flag and its history for people."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.output import say, say_line
from compilegate.cli.flag.status import FlagStatus
from compilegate.domain.errors import shortened
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.records.flags import HUMAN, Author, FlagVersion
from compilegate.domain.utc import minute

WHO = {"evaluate": "a trial (EVALUATE)", "train": "production monitoring (TRAIN)"}
NAME_WIDTH = 16


def show_status(status: FlagStatus, cloud: Cloud) -> None:
    """On or off, since when, by whom and why; then where parameter and ledger disagree."""
    flag = status.flag
    say(f"{status.workload}: {_status(status)}")
    for key, value in flag.overrides.items() if flag.enabled else ():
        _row(key, shortened(str(value)))
    if not status.agrees:
        say_line(f"  {status.name}")
        _disagreement(status, cloud)
        return
    if status.change:
        _row("since", str(flag.since or minute(status.change.at)))
        _row("by", who(status.change))
        _row("stale" if flag.state == "stale" else "why", status.change.reason)
        _overrode(status.change)
    if flag.decision_id:
        trial = status.change.trial if status.change else None
        _row("decision", flag.decision_id + (f", trial {trial}" if trial else ""))
    if status.human and status.human is not status.change:
        override = status.human
        _row("last override", f"{override.action} by {who(override)}, {minute(override.at)}")
        _row("", override.reason)
    say_line(f"  {status.name}")


def show_history(workload: str, changes: Sequence[FlagVersion], *, bucket: str) -> None:
    """Every change with its evidence, in the order given."""
    if not changes:
        say(f"{workload}: the flag has never been changed; production trains the baseline.")
    for version in changes:
        say(change_line(version))
        say(version.reason, indent=2)
        _overrode(version)
        if version.decision_id:
            trial = f", trial {version.trial}" if version.trial else ""
            say(f"decision {version.decision_id}{trial}", indent=2)
        for name in ("decision_key", "evidence_key"):
            if version.details.get(name):
                say_line(f"  s3://{bucket}/{version.details[name]}")


def change_line(version: FlagVersion) -> str:
    """``2026-11-20 10:00 UTC  off -> on (probation), candidate compile, by …: enable``."""
    before, after = version.previous, version.flag
    candidate = f", candidate {after.candidate}" if after.candidate else ""
    step = f"{_on(before)} -> {on_words(after)}"
    return f"{minute(version.at)}  {step}{candidate}, {version.action} by {who(version)}"


def who(author: FlagVersion | Author) -> str:
    """A person's name or the state machine's, and who approved the change."""
    by = author.by
    name = by.removeprefix(HUMAN) if by.startswith(HUMAN) else WHO.get(by, by)
    details = author.details if isinstance(author, FlagVersion) else {}
    approved_by = details.get("approved_by")
    return f"{name}, approved by {approved_by.removeprefix(HUMAN)}" if approved_by else name


def _row(name: str, value: str) -> None:
    say(f"{name:<{NAME_WIDTH}} {value}", indent=2, hang=NAME_WIDTH + 1)


def _on(flag: Flag) -> str:
    return "on" if flag.enabled else "off"


def on_words(flag: Flag) -> str:
    """``on (probation)``; a flag that is simply off is ``off``."""
    return _on(flag) if flag.state == OFF.state else f"{_on(flag)} ({flag.state})"


def _status(status: FlagStatus) -> str:
    if status.problem:
        why = "unreadable" if status.said is None else "not what the ledger says"
        return f"off ({why}; production's next run trains the baseline)"
    if not status.present and status.change is None:
        return "off (never set: production trains the baseline)"
    flag = status.flag
    if flag.candidate:
        return f"{_on(flag)} ({flag.state}, candidate {flag.candidate})"
    return on_words(flag)


def _overrode(version: FlagVersion) -> None:
    replaced = version.overrode
    if replaced:
        say(f"overrides: {who(replaced)} on {minute(replaced.at)}: {replaced.reason}", indent=2)


def _disagreement(status: FlagStatus, cloud: Cloud) -> None:
    what = "says something else" if status.present else "is not there"
    if status.said is None:
        what = "cannot be read"
    recorded = "no change is recorded"
    if status.change is not None:
        recorded = f"the ledger's latest change says {on_words(status.ledger)}"
    say(f"The parameter {what}: {recorded}. It was lost or edited by hand.")
    if status.problem:
        say(status.problem, indent=2, hang=2)
    if status.said is not None and status.said.enabled:
        say("A pipeline that reads the parameter follows it until it is repaired.")
    if status.change:
        say(change_line(status.change), indent=2)
        say(status.change.reason, indent=4)
    say("To restore it from the ledger:")
    say_line(f"  {cloud.command(f'flag repair {status.workload}')}")
