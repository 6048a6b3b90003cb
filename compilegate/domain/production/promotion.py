"""The promotion that a flag stands for: which trial measured it, since when it is on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compilegate.domain.flag import Flag, parse_flag
from compilegate.domain.flag_change import TRAIN, flag_of, is_human

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Promotion:
    """A candidate that is on, and the trial that measured it.

    ``at`` is when it was turned on, ``since`` when the flag took its present state (epoch
    seconds); ``version`` is that of the flag's latest change. ``by_human``: a person turned on
    what a trial had planned, whatever it was measured on.
    """

    trial: str
    candidate: str
    at: int
    since: int
    flag: Flag
    version: int
    by_human: bool = False


def standing_promotion(history: Sequence[Entry]) -> Promotion | None:
    """What is on, and which trial's evidence it is held against; None where there is none.

    ``history`` is every change of the flag, oldest first. A person who turns on what a trial has
    planned begins a promotion of their own; what no trial has measured can be held against nothing.
    """
    flag = flag_of(history)
    proven = latest_promotion(history)
    if not flag.enabled or flag.candidate is None or proven is None:
        return None
    was = parse_flag(str(proven["to"]))
    if (was.candidate, was.overrides) != (flag.candidate, flag.overrides):
        return None
    return Promotion(
        trial=str(proven["trial"]),
        candidate=flag.candidate,
        at=int(proven["at"]),
        since=_since(history, flag),
        flag=flag,
        version=len(history),
        by_human=is_human(proven),
    )


def latest_promotion(history: Sequence[Entry]) -> Entry | None:
    """The flag's entry by which a trial last turned a candidate on, None where none ever has."""
    return next(iter(promotions(history)[::-1]), None)


def promotions(history: Sequence[Entry]) -> list[Entry]:
    """The flag's entries by which a trial's candidate was turned on, oldest first."""
    return [entry for entry in history if _promotes(entry)]


def _promotes(entry: Entry) -> bool:
    """Whether it turned on what a trial has measured; what the watch changes does not count."""
    return bool(entry.get("trial")) and entry["by"] != TRAIN and parse_flag(entry["to"]).enabled


def _since(history: Sequence[Entry], flag: Flag) -> int:
    """When the flag took the state that it has."""
    since = int(history[-1]["at"])
    for entry in reversed(history):
        found = parse_flag(str(entry["to"]))
        if (found.enabled, found.state) != (flag.enabled, flag.state):
            break
        since = int(entry["at"])
    return since
