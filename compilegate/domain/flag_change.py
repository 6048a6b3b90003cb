"""What a change of the flag is, and which change outranks which.

The flag's versions are in the ledger: 1, 2, 3, … without a gap (records/flags.py), and the latest
says what the parameter has to hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.trials import TrialStarted
from compilegate.domain.utc import iso

# Who changes flags besides people, and the action of a proven regression.
EVALUATE, TRAIN = "evaluate", "train"
REVERT = "revert"

Versions = Sequence[FlagVersion]


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


def changes_nothing(change: FlagVersion, versions: Versions) -> bool:
    """Whether the flag is already so; a manual change is kept in any case.

    A flag that is off is not turned off again, so that the reason why it is off is kept.
    """
    if change.by_human:
        return False
    now, new = flag_of(versions), change.flag
    if not new.enabled and not now.enabled and new.state == OFF.state:
        return True
    kept = [(one.state, one.holdback, one.compile_bundle) for one in (now, new)]
    return kept[0] == kept[1] and _effect(now) == _effect(new)


def held_by(change: FlagVersion, versions: Versions) -> FlagVersion | None:
    """The change that this one may not overrule, None where there is none.

    A machine that decides on evidence from before a manual change does not know its reason; nor
    does a trial that began before production proved that its candidate regresses. A proven
    regression is the exception: turning off what trains worse is the safe side.
    """
    if change.by_human or (change.action == REVERT and flag_of(versions).enabled):
        return None
    new = change.flag
    for version in reversed(versions):
        if change.seen_version is None:
            is_unseen = version.at >= (change.decided_at or 0)
        else:
            is_unseen = version.version > change.seen_version
        is_revert = new.enabled and (version.by, version.action) == (TRAIN, REVERT)
        proves_against = is_revert and (
            version.previous.candidate == new.candidate
            or version.previous.overrides == new.overrides
        )
        if is_unseen and (version.by_human or proves_against):
            return version
    return None


def superseded_by(change: FlagVersion, versions: Versions) -> FlagVersion | None:
    """The change that put something else in the place of what this one has judged.

    What follows from one candidate must not be done to another that was turned on meanwhile. A
    regression is turned off wherever that candidate is on now, or was when it went off.
    """
    if change.based_on is None or not 0 < change.based_on <= len(versions):
        return None
    judged = versions[change.based_on - 1].flag
    reverts = change.action == REVERT
    later = versions[-1:] if reverts else versions[change.based_on :]
    for version in reversed(later):
        now = version.flag
        same = now.candidate == judged.candidate and (
            now.overrides == judged.overrides if now.enabled else reverts
        )
        if not same:
            return version
    return None


def next_version(change: FlagVersion, versions: Versions, *, name: str, at: int) -> FlagVersion:
    """The version that makes the change of the parameter ``name`` at epoch second ``at``."""
    flag, now, last = change.flag, flag_of(versions), versions[-1] if versions else None
    # Whose manual change this one replaces.
    replaced = last if last and last.by_human and not change.by_human else None
    if _effect(now) == _effect(flag):
        replaced = None
    return replace(
        change,
        version=len(versions) + 1,
        at=at,
        value=replace(flag, since=flag.since or iso(at)).to_json(),
        previous_value=now.to_json(),
        parameter=name,
        overrode=replaced.author if replaced else None,
    )


def _effect(flag: Flag) -> tuple[bool, Mapping[str, Any]]:
    """What production reads of it."""
    return flag.enabled, flag.overrides if flag.enabled else {}


# Manual changes of a flag: what a person may say, and which change follows from it.
#
# Manual overrides outrank automated decisions: evidence from before one cannot overrule it. An
# override is therefore recorded even where it changes nothing.

SET, REVERT_BY_HAND = "set", "revert"
# The same command within this time counts as a retry; later it is a new override.
AGAIN_SECONDS = 600
LONGEST_REASON = 500  # characters: it goes into the ledger, messages and their subjects


@dataclass(frozen=True)
class Override:
    """The author and the reason; the ledger keeps both."""

    who: str
    reason: str

    def __post_init__(self) -> None:
        """Refuse an override without a reason; raises InvalidInputError."""
        if not self.reason.strip() or not self.reason.isprintable():
            raise InvalidInputError(
                "must be one line of text", field="--reason", value=self.reason,
                fix='give a reason for readers of the history: --reason "loss spikes since Monday"',
            )  # fmt: skip
        if len(self.reason.strip()) > LONGEST_REASON:
            raise InvalidInputError(
                f"has {len(self.reason.strip())} characters, more than {LONGEST_REASON}",
                field="--reason", value=self.reason, fix="shorten it, and link to the details",
            )  # fmt: skip


def turned_off(now: Flag) -> Flag:
    """The flag off; one that is off keeps its state, and so the reason why it is off."""
    state = "reverted" if now.enabled else now.state
    return Flag(False, state, now.candidate, decision_id=now.decision_id)


def override_change(
    action: str,
    flag: Flag,
    override: Override,
    versions: Versions,
    trials: Iterable[TrialStarted],
    *,
    now: int,
    details: Mapping[str, Any] | None,
) -> FlagVersion:
    """The change to ``flag`` that an override asks for, by ``set`` or ``revert``.

    It is a new one for every override, and the same one where an interrupted command is repeated:
    recently, and with no trial since, by the version that it has seen, where it says one, else by
    time: such a trial is not bound by the last one. ``trials`` are those of
    the workload, ``now`` is in epoch seconds, ``details`` go into the ledger entry.
    """
    reason = override.reason.strip()
    parts = [action, override.who, reason, flag.to_json()]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
    change_id = f"human#{FlagVersion.key_of(version=len(versions) + 1)}#{digest}"
    for last in versions[-1:]:
        if (
            last.change_id.startswith("human#")
            and last.change_id.endswith(f"#{digest}")
            and abs(now - last.at) <= AGAIN_SECONDS
            and not any(
                trial.at >= last.at
                if trial.flag_version is None
                else trial.flag_version >= last.version
                for trial in trials
            )
        ):
            change_id = last.change_id
    return FlagVersion(
        version=0,
        at=now,
        change_id=change_id,
        by=f"{HUMAN}{override.who}",
        action=action,
        value=flag.to_json(),
        reason=reason,
        decided_at=now,
        decision_id=flag.decision_id,
        details=details or {},
    )
