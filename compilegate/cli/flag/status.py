"""One workload's flag: parameter, ledger and latest override; the screens of flag and history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.output import say, say_line
from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError, shortened
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import agrees, flag_of
from compilegate.domain.records.flags import HUMAN, Author, FlagVersion
from compilegate.domain.utc import minute
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import flag_versions

WHO = {"evaluate": "a trial (EVALUATE)", "train": "production monitoring (TRAIN)"}
NAME_WIDTH = 16


@dataclass(frozen=True)
class FlagStatus:
    """``flag`` is what TRAIN's next run follows, ``problem`` why it is not what the parameter says.

    ``parameter`` is None where it cannot be read. ``change`` is the ledger's latest, ``human`` the
    latest manual one, None before any. ``agrees`` says whether the parameter and the ledger do.
    """

    workload: str
    name: str
    present: bool
    parameter: Flag | None
    flag: Flag
    ledger: Flag
    agrees: bool
    problem: str | None
    change: FlagVersion | None
    human: FlagVersion | None

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        change = self.change.to_entry() if self.change else {}
        human = self.human.to_entry() if self.human else {}
        keys = (
            "at", "by", "action", "reason", "trial", "decision_key", "evidence_key", "overrode",
            "approved_by",
        )  # fmt: skip
        words = ("at", "by", "action", "reason")
        return {
            "workload": self.workload,
            "name": self.name,
            "set": self.present,
            "enabled": self.flag.enabled,
            "state": self.flag.state,
            "candidate": self.flag.candidate,
            "overrides": dict(self.flag.overrides),
            "decision_id": self.flag.decision_id,
            "since": self.flag.since,
            "version": change.get("version", 0),
            "change": {key: change.get(key) for key in keys} if self.change else None,
            "human": {key: human[key] for key in words} if human else None,
            "agrees": self.agrees,
            "problem": self.problem,
        }


def flag_status(workload: str, services: Services) -> FlagStatus:
    """The flag as it stands; a parameter that cannot be read is off, as production takes it."""
    name = naming.flag_parameter(services.settings.stage, workload)
    raw, versions = services.flags.read(name), flag_versions(workload, services)
    fits, stored, problem = agrees(raw, versions), None, None
    try:
        stored = parse_flag(raw)
    except InvalidInputError as error:
        problem = str(error)
    if stored is not None and stored.enabled and not fits:
        problem = f"it is on ({stored.candidate}), but no recorded change turned it on"
    words = [version for version in versions if version.by_human]
    return FlagStatus(
        workload=workload,
        name=name,
        present=raw is not None,
        parameter=stored,
        flag=stored if stored is not None and problem is None else OFF,
        ledger=flag_of(versions),
        agrees=fits,
        problem=problem,
        change=versions[-1] if versions else None,
        human=words[-1] if words else None,
    )


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
        why = "unreadable" if status.parameter is None else "differs from the ledger"
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
    what = "differs from the ledger" if status.present else "is missing"
    if status.parameter is None:
        what = "cannot be read"
    recorded = "no change is recorded"
    if status.change is not None:
        recorded = f"after the ledger's latest change the flag is {on_words(status.ledger)}"
    say(f"The parameter {what}: {recorded}. It was lost or edited by hand.")
    if status.problem:
        say(status.problem, indent=2, hang=2)
    if status.parameter is not None and status.parameter.enabled:
        say("A pipeline that reads the parameter follows it until it is repaired.")
    if status.change:
        say(change_line(status.change), indent=2)
        say(status.change.reason, indent=4)
    say("To restore it from the ledger:")
    say_line(f"  {cloud.command(f'flag repair {status.workload}')}")
