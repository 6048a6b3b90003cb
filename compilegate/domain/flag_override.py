"""Manual changes of a flag: what a person may say, and which change follows from it.

Manual overrides outrank automated decisions: evidence from before one cannot overrule it. An
override is therefore recorded even where it changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import FlagChange, began_after
from compilegate.domain.ledger_keys import flag_entry
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.trials import TrialStarted

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


@dataclass(frozen=True)
class RequestedFlag:
    """What the flag is to be, by ``set`` or ``revert``; ``details`` go into the ledger entry."""

    action: str
    flag: Flag
    details: Mapping[str, Any] = field(default_factory=dict)


def turned_off(now: Flag) -> RequestedFlag:
    """The flag off; one that is off keeps its state, and so the reason why it is off."""
    state = "reverted" if now.enabled else now.state
    return RequestedFlag(
        REVERT_BY_HAND, Flag(False, state, now.candidate, decision_id=now.decision_id)
    )


def override_change(
    requested: RequestedFlag,
    override: Override,
    versions: Sequence[FlagVersion],
    trials: Iterable[TrialStarted],
    *,
    now: int,
) -> FlagChange:
    """The change that an override asks for.

    It is a new one for every override, and the same one where an interrupted command is repeated.
    ``trials`` are those of the workload, ``now`` is in epoch seconds.
    """
    parts = [
        requested.action, override.who, override.reason.strip(), requested.flag.to_json(),
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
    last = versions[-1].change_id if versions else ""
    same = last.startswith("human#") and last.endswith(f"#{digest}")
    again = same and _may_be_interrupted(versions[-1], trials, now)
    return FlagChange(
        change_id=last if again else f"human#{flag_entry(len(versions) + 1)}#{digest}",
        by=f"{HUMAN}{override.who}",
        action=requested.action,
        flag=requested.flag,
        reason=override.reason.strip(),
        decided_at=now,
        decision_id=requested.flag.decision_id,
        details=requested.details,
    )


def _may_be_interrupted(last: FlagVersion, trials: Iterable[TrialStarted], now: int) -> bool:
    """Whether the last override may be of an interrupted command: recent, no trial since.

    A trial that has begun since is not bound by that override, so that a new one is needed.
    """
    if abs(now - last.at) > AGAIN_SECONDS:
        return False
    return not any(began_after(trial, last) for trial in trials)
