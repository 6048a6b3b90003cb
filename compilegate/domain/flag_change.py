"""What a change of the flag is, and which change outranks which.

The flag's versions are in the ledger: 1, 2, 3, … without a gap (records/flags.py), and the latest
says what the parameter has to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.records.flags import HUMAN, Author, FlagVersion
from compilegate.domain.records.trials import TrialStarted

# Who changes flags besides people, and the action of a proven regression.
EVALUATE, TRAIN = "evaluate", "train"
REVERT = "revert"

Versions = Sequence[FlagVersion]


@dataclass(frozen=True)
class FlagChange:
    """A requested change: by whom and why.

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
        """Whether a person requested the change."""
        return self.by.startswith(HUMAN)


def flag_of(versions: Versions) -> Flag:
    """What the history says the flag is; off before the first change."""
    return versions[-1].flag if versions else OFF


def agrees(text: str | None, versions: Versions) -> bool:
    """Whether the parameter's value is what the ledger says; absent is off before any change."""
    if versions:
        return text == versions[-1].value
    try:
        return not parse_flag(text).enabled
    except InvalidInputError:
        return False


def same_change(versions: Versions, change_id: str) -> FlagVersion | None:
    """The version that an earlier attempt at the same change has written."""
    return next((one for one in versions if one.change_id == change_id), None)


def changes_nothing(change: FlagChange, versions: Versions) -> bool:
    """Whether the flag is already so; a manual change is kept in any case.

    A flag that is off is not turned off again, so that the reason why it is off is kept.
    """
    if change.by_human:
        return False
    now, new = flag_of(versions), change.flag
    if not new.enabled and not now.enabled and new.state == OFF.state:
        return True
    return _effect(now) == _effect(new) and now.state == new.state


def held_by(change: FlagChange, versions: Versions) -> FlagVersion | None:
    """The change that this one may not overrule, None where there is none.

    A machine that decides on evidence from before a manual change does not know its reason; nor
    does a trial that began before production proved that its candidate regresses. A proven
    regression is the exception: turning off what trains worse is the safe side.
    """
    if change.by_human or (change.action == REVERT and flag_of(versions).enabled):
        return None
    unseen = (one for one in reversed(versions) if _unseen(one, change))
    return next((one for one in unseen if one.by_human or _proves_against(one, change)), None)


def superseded_by(change: FlagChange, versions: Versions) -> FlagVersion | None:
    """The change that put something else in the place of what this one has judged.

    What follows from one candidate must not be done to another that was turned on meanwhile. A
    regression is turned off wherever that candidate is on now, or was when it went off.
    """
    if change.based_on is None or not 0 < change.based_on <= len(versions):
        return None
    judged = versions[change.based_on - 1].flag
    reverts = change.action == REVERT
    later = versions[-1:] if reverts else versions[change.based_on :]
    for one in reversed(later):
        now = one.flag
        same = now.candidate == judged.candidate and (
            now.overrides == judged.overrides if now.enabled else reverts
        )
        if not same:
            return one
    return None


def began_after(trial: TrialStarted, version: FlagVersion) -> bool:
    """Whether a trial knows of a change of the flag.

    By the version that it has seen, where it says one, else by time.
    """
    if trial.flag_version is None:
        return trial.at >= version.at
    return int(trial.flag_version) >= version.version


def overrules(change: FlagChange, versions: Versions) -> Author | None:
    """Whose manual change this one replaces; None without one."""
    if change.by_human or not versions or not versions[-1].by_human:
        return None
    if _effect(flag_of(versions)) == _effect(change.flag):
        return None
    return versions[-1].author


def next_version(change: FlagChange, versions: Versions, *, name: str, at: int) -> FlagVersion:
    """The version that makes the change of the parameter ``name`` at epoch second ``at``."""
    return FlagVersion(
        version=len(versions) + 1,
        at=at,
        change_id=change.change_id,
        by=change.by,
        action=change.action,
        reason=change.reason,
        value=change.flag.to_json(),
        previous_value=flag_of(versions).to_json(),
        parameter=name,
        decided_at=change.decided_at,
        seen_version=change.seen_version,
        based_on=change.based_on,
        decision_id=change.decision_id,
        overrode=overrules(change, versions),
        details=change.details,
    )


def _unseen(version: FlagVersion, change: FlagChange) -> bool:
    """Whether what a change goes by is older than this version."""
    if change.seen_version is None:
        return version.at >= change.decided_at
    return version.version > change.seen_version


def _proves_against(version: FlagVersion, change: FlagChange) -> bool:
    """Whether production has proven a regression of what a trial would turn on."""
    if (version.by, version.action) != (TRAIN, REVERT) or not change.flag.enabled:
        return False
    was, new = version.previous, change.flag
    return was.candidate == new.candidate or was.overrides == new.overrides


def _effect(flag: Flag) -> tuple[bool, Mapping[str, Any]]:
    """What production reads of it."""
    return flag.enabled, flag.overrides if flag.enabled else {}
