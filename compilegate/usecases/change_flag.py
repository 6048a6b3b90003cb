"""Changes a flag exactly once: the ledger first, then the parameter, until the two agree.

The ledger decides. A change is appended under the next version, on the condition that nobody
else has; whoever loses that race reads again and decides again. Parameter Store knows no
condition, so a slow writer could put an older value over a newer one: therefore everyone who
writes the parameter reads the ledger afterwards, and writes again until what was written is the
latest. A crash anywhere is repaired by running the same change again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain import ledger_keys, naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import (
    Entry,
    FlagChange,
    changes_nothing,
    flag_entries,
    flag_of,
    held_by,
    same_change,
    superseded_by,
    to_entry,
)
from compilegate.domain.utc import iso
from compilegate.ports import Services

__all__ = ["Changed", "FlagChange", "change_flag", "flag_history", "latest_flag", "repair_flag"]


@dataclass(frozen=True)
class Changed:
    """What became of a change.

    ``flag`` and ``version`` are the change's own where it was made, else those that stand.
    ``overrode`` is the person's word that it set aside, ``held_by`` the one that it may not,
    ``superseded_by`` what has taken the place of what it judged, each ``{by, at, reason}``.
    ``unwritten`` says why the parameter does not hold yet what the ledger says, None where it does.
    """

    changed: bool
    flag: Flag
    version: int
    overrode: Mapping[str, Any] | None = None
    held_by: Mapping[str, Any] | None = None
    superseded_by: Mapping[str, Any] | None = None
    unwritten: str | None = None


def change_flag(workload: str, change: FlagChange, *, services: Services) -> Changed:
    """Make the change, or say why not; repeating it is safe and comes to the same.

    ``change.flag.since`` is filled in where it is None. Raises InvalidInputError for a flag that
    does not fit the parameter.
    """
    while True:
        history = flag_history(workload, services)
        made = same_change(history, change.change_id)
        if made is None:
            holder, newer = held_by(change, history), superseded_by(change, history)
            if holder or newer or changes_nothing(change, history):
                repair_flag(workload, services)
                return _unchanged(history, holder, newer)
            made = _append(workload, change, history, services)
            history = [*history, made]
        if made["change_id"] == change.change_id:
            _bring_up_to_date(workload, history, services)
            return _made(made)


def half_made(
    workload: str, change: FlagChange, error: Exception, services: Services
) -> Changed | None:
    """A change that ``error`` ended after the ledger had it; None where it was never recorded."""
    made = same_change(flag_history(workload, services), change.change_id)
    return None if made is None else replace(_made(made), unwritten=f"{error}")


def flag_history(workload: str, services: Services) -> list[Entry]:
    """Every change of a workload's flag from the ledger, oldest first."""
    return flag_entries(services.ledger.entries(workload, ledger_keys.FLAG_ENTRIES))


def latest_flag(workload: str, services: Services) -> tuple[Flag, int]:
    """What the ledger says the flag is, and its version; ``(OFF, 0)`` before any change."""
    history = flag_history(workload, services)
    return flag_of(history), len(history)


def repair_flag(workload: str, services: Services) -> bool:
    """Give the parameter the ledger's latest value; returns whether it held anything else."""
    history = flag_history(workload, services)
    if agrees(_read(workload, services), history):
        return False
    _bring_up_to_date(workload, history, services)
    return True


def agrees(raw: str | None, history: list[Entry]) -> bool:
    """Whether the parameter's value is what the ledger says; absent is off before any change."""
    if history:
        return raw == str(history[-1]["to"])
    try:
        return not parse_flag(raw).enabled
    except InvalidInputError:
        return False


def _append(
    workload: str, change: FlagChange, history: list[Entry], services: Services
) -> Mapping[str, Any]:
    """The entry at the next version: this change's, or somebody else's who was faster."""
    now = services.clock.now()
    since = iso(now)
    dated = replace(change, flag=replace(change.flag, since=change.flag.since or since))
    name = naming.flag_parameter(services.settings.stage, workload)
    entry = to_entry(dated, history, name=name, at=now)
    return services.ledger.put_once(workload, ledger_keys.flag_entry(entry["version"]), entry)


def _bring_up_to_date(workload: str, history: list[Entry], services: Services) -> None:
    """Write the latest value until nobody has added a later one meanwhile."""
    name = naming.flag_parameter(services.settings.stage, workload)
    while True:
        written = len(history)
        services.flags.write(name, history[-1]["to"] if history else OFF.to_json())
        history = flag_history(workload, services)
        if len(history) == written:
            return


def _read(workload: str, services: Services) -> str | None:
    return services.flags.read(naming.flag_parameter(services.settings.stage, workload))


def _made(entry: Entry) -> Changed:
    return Changed(
        changed=True,
        flag=parse_flag(entry["to"]),
        version=int(entry["version"]),
        overrode=entry["overrode"],
    )


def _unchanged(history: list[Entry], holder: Entry | None, newer: Entry | None) -> Changed:
    return Changed(
        changed=False,
        flag=flag_of(history),
        version=len(history),
        held_by=_word(holder),
        superseded_by=_word(newer),
    )


def _word(entry: Entry | None) -> dict[str, Any] | None:
    return None if entry is None else {key: entry[key] for key in ("by", "at", "reason")}
