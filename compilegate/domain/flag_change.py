"""What a change of the flag is, and who may overrule whom.

The ledger's entries of kind ``flag`` are the history: version 1, 2, 3, … without a gap, and the
latest says what the parameter has to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.flag import OFF, Flag, parse_flag

KIND = "flag"
HUMAN = "human:"
# Who changes flags without being asked, and what they call it.
EVALUATE, TRAIN = "evaluate", "train"
REVERT = "revert"

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class FlagChange:
    """What is wanted, by whom and why.

    ``change_id`` makes repeating a step the same change. ``by`` is ``evaluate``, ``train`` or
    ``human:NAME``. ``decided_at`` is the epoch second up to which the evidence behind it reaches,
    ``seen_version`` the flag's version that it knows of: where that is known it decides instead,
    because the clocks of two machines differ. ``based_on`` is the version that was judged, of which
    the change is a consequence, None for one that stands for itself. ``details`` are further
    fields of the ledger entry: trial, evidence_key, decision_key.
    """

    change_id: str
    by: str
    action: str
    flag: Flag
    reason: str
    decided_at: int
    decision_id: str | None = None
    seen_version: int | None = None
    based_on: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_human(self) -> bool:
        """Whether a person wants it."""
        return self.by.startswith(HUMAN)


def flag_entries(entries: Iterable[Entry]) -> list[Entry]:
    """The changes among a workload's ledger entries, oldest first."""
    changes = [entry for entry in entries if entry.get("kind") == KIND]
    return sorted(changes, key=lambda entry: int(entry["version"]))


def flag_of(history: Sequence[Entry]) -> Flag:
    """What the history says the flag is; off before the first change."""
    return parse_flag(str(history[-1]["to"])) if history else OFF


def same_change(history: Sequence[Entry], change_id: str) -> Entry | None:
    """The entry of a change that was written before, by an attempt that did not end."""
    return next((entry for entry in history if entry["change_id"] == change_id), None)


def changes_nothing(change: FlagChange, history: Sequence[Entry]) -> bool:
    """Whether the flag is already so; what a person says is kept in any case.

    What is off stays as it is when it should merely be off: why it is off is worth keeping.
    """
    if change.by_human:
        return False
    now, wanted = flag_of(history), change.flag
    if not wanted.enabled and not now.enabled and wanted.state == OFF.state:
        return True
    return _told(now) == _told(wanted) and now.state == wanted.state


def held_by(change: FlagChange, history: Sequence[Entry]) -> Entry | None:
    """The change that this one may not overrule, None where there is none.

    A machine that decides on evidence from before a person's word does not know what made them
    say it; nor does a trial that began before production proved that its candidate regresses.
    A proven regression is the exception: turning off what trains worse is the safe side.
    """
    if change.by_human or (change.action == REVERT and flag_of(history).enabled):
        return None
    unseen = (entry for entry in reversed(history) if _unseen(entry, change))
    return next((e for e in unseen if is_human(e) or _proves_against(e, change)), None)


def superseded_by(change: FlagChange, history: Sequence[Entry]) -> Entry | None:
    """The change that put something else in the place of what this one has judged.

    What follows from one candidate must not be done to another that was turned on meanwhile. A
    regression is turned off wherever that candidate is on now, or was when it went off.
    """
    if change.based_on is None or not 0 < change.based_on <= len(history):
        return None
    judged = parse_flag(str(history[change.based_on - 1]["to"]))
    reverts = change.action == REVERT
    later = history[-1:] if reverts else history[change.based_on :]
    for entry in reversed(later):
        now = parse_flag(str(entry["to"]))
        same = now.candidate == judged.candidate and (
            now.overrides == judged.overrides if now.enabled else reverts
        )
        if not same:
            return entry
    return None


def began_after(trial: Entry, said: Entry) -> bool:
    """Whether a trial (its ledger entry of kind ``started``) knows of a change of the flag.

    False for any other entry. By the version that it has seen, where it says one, else by time.
    """
    if trial.get("kind") != "started":
        return False
    seen = trial.get("flag_version")
    if seen is None:
        return int(trial["at"]) >= int(said["at"])
    return int(seen) >= int(said["version"])


def overrules(change: FlagChange, history: Sequence[Entry]) -> dict[str, Any] | None:
    """Whose word this change sets aside, ``{by, at, reason}``; None where it is nobody's."""
    if change.by_human or not history or not is_human(history[-1]):
        return None
    if _told(flag_of(history)) == _told(change.flag):
        return None
    return {key: history[-1][key] for key in ("by", "at", "reason")}


def is_human(entry: Entry) -> bool:
    """Whether a person made this change."""
    return str(entry["by"]).startswith(HUMAN)


def to_entry(change: FlagChange, history: Sequence[Entry], *, name: str, at: int) -> dict[str, Any]:
    """The next ledger entry, for the parameter ``name``, written at epoch second ``at``."""
    return {
        **change.details,
        "kind": KIND,
        "at": at,
        "version": len(history) + 1,
        "change_id": change.change_id,
        "by": change.by,
        "action": change.action,
        "reason": change.reason,
        "decided_at": change.decided_at,
        "seen_version": change.seen_version,
        "based_on": change.based_on,
        "decision_id": change.decision_id,
        "flag": name,
        "from": flag_of(history).to_json(),
        "to": change.flag.to_json(),
        "overrode": overrules(change, history),
    }


def _unseen(entry: Entry, change: FlagChange) -> bool:
    """Whether what a change goes by is older than this entry."""
    if change.seen_version is None:
        return bool(entry["at"] >= change.decided_at)
    return int(entry["version"]) > change.seen_version


def _proves_against(entry: Entry, change: FlagChange) -> bool:
    """Whether production has proven a regression of what a trial would turn on."""
    if (entry["by"], entry["action"]) != (TRAIN, REVERT) or not change.flag.enabled:
        return False
    was, wanted = parse_flag(str(entry["from"])), change.flag
    return was.candidate == wanted.candidate or was.overrides == wanted.overrides


def _told(flag: Flag) -> tuple[bool, Mapping[str, Any]]:
    """What production hears of it."""
    return flag.enabled, flag.overrides if flag.enabled else {}
