"""What a person makes of a flag: on with a candidate that was planned, or off.

A person's word is recorded even where it changes nothing, because it binds the machine: evidence
from before it cannot overrule it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.flag import Flag, promoted
from compilegate.domain.flag_change import HUMAN, Entry, FlagChange, began_after
from compilegate.domain.notification import command_at
from compilegate.domain.planning.arm_plan import CANDIDATE
from compilegate.ports import Services
from compilegate.usecases.change_flag import (
    Changed,
    change_flag,
    flag_history,
    half_made,
    latest_flag,
)
from compilegate.usecases.trial import Trial, load_record

SET, REVERT_BY_HAND = "set", "revert"
PROMOTE = "promote"
TRIALS = "trial#"  # sort keys of what trials leave in the ledger
# Who says the same again so soon runs a command again that broke off; later it is a new word.
AGAIN_SECONDS = 600
LONGEST_REASON = 500  # characters: it goes into the ledger, messages and their subjects


@dataclass(frozen=True)
class Word:
    """Who says it, and why; both are kept in the ledger."""

    who: str
    reason: str

    def __post_init__(self) -> None:
        """Refuse a word without a reason; raises InvalidInputError."""
        if not self.reason.strip() or not self.reason.isprintable():
            raise InvalidInputError(
                "must be one line of text", field="--reason", value=self.reason,
                fix='say why, for those who read the history: --reason "loss spikes since Monday"',
            )  # fmt: skip
        if len(self.reason.strip()) > LONGEST_REASON:
            raise InvalidInputError(
                f"has {len(self.reason.strip())} characters, more than {LONGEST_REASON}",
                field="--reason", value=self.reason, fix="say it shorter, and where the rest is",
            )  # fmt: skip


@dataclass(frozen=True)
class KnownCandidate:
    """A candidate as the newest trial that decided on it has planned it.

    ``proven`` says whether that trial promoted this very candidate.
    """

    name: str
    trial: str
    flag: Flag
    verdict: str
    proven: bool
    details: Mapping[str, Any] = field(default_factory=dict)


def known_candidates(workload: str, services: Services) -> dict[str, KnownCandidate]:
    """Every candidate whose overrides a decided trial has recorded, by name."""
    found: dict[str, KnownCandidate] = {}
    decided = [e for e in services.ledger.entries(workload, TRIALS) if e["kind"] == "decision"]
    for entry in sorted(decided, key=lambda one: int(one["at"]), reverse=True):
        for known in _planned(workload, entry, services):
            found.setdefault(known.name, known)
    return found


def find_candidate(workload: str, name: str, services: Services) -> KnownCandidate:
    """A recorded candidate; raises InvalidInputError that names those there are."""
    known = known_candidates(workload, services)
    if name not in known:
        fix = f"use one of {', '.join(sorted(known))}" if known else (
            f"run a trial of {workload} first, so that its overrides are recorded"
        )  # fmt: skip
        problem = "is no candidate that a decided trial of this workload has planned"
        raise InvalidInputError(problem, field="--candidate", value=name, fix=fix)
    return known[name]


def set_by_hand(
    workload: str, candidate: KnownCandidate, word: Word, *, services: Services
) -> Changed:
    """Turn the flag on with a candidate, in probation so that production is watched."""
    details = {"trial": candidate.trial, **candidate.details}
    return _say(workload, SET, candidate.flag, word, details=details, services=services)


def revert_by_hand(workload: str, word: Word, *, services: Services) -> Changed:
    """Turn the flag off; one that is off stays so, and the word is kept.

    Raises InvalidInputError for a workload that nothing is known of.
    """
    if not services.ledger.entries(workload):
        raise InvalidInputError(
            "is not a workload that this stage knows", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', services.settings.stage)}`",
        )  # fmt: skip
    now, _ = latest_flag(workload, services)
    state = "reverted" if now.enabled else now.state
    off = Flag(False, state, now.candidate, decision_id=now.decision_id)
    return _say(workload, REVERT_BY_HAND, off, word, details={}, services=services)


def _planned(workload: str, entry: Entry, services: Services) -> list[KnownCandidate]:
    """The candidates of a decided trial; none where it was refused before it was planned."""
    trial = Trial(workload, str(entry["trial"]), "")
    try:
        arms = load_record(services.store, trial, "plan")["arms"]
    except NotFoundError:
        return []
    details = {
        "decision_key": entry["decision_key"],
        "evidence_key": trial.record_key("evidence"),
    }
    return [
        KnownCandidate(
            name=arm["name"],
            trial=trial.trial,
            flag=promoted(arm, arms[0], decision_id=entry["decision_id"]),
            verdict=str(entry["verdict"]),
            proven=(entry["verdict"], entry["candidate"]) == (PROMOTE, arm["name"]),
            details=details,
        )
        for arm in arms
        if arm["role"] == CANDIDATE
    ]


def _say(
    workload: str,
    action: str,
    flag: Flag,
    word: Word,
    *,
    details: Mapping[str, Any],
    services: Services,
) -> Changed:
    history = flag_history(workload, services)
    again = _broken_off(workload, history, services)
    change = FlagChange(
        change_id=_change_id(history, action, flag, word, again=again),
        by=f"{HUMAN}{word.who}",
        action=action,
        flag=flag,
        reason=word.reason.strip(),
        decided_at=services.clock.now(),
        decision_id=flag.decision_id,
        details=details,
    )
    try:
        return change_flag(workload, change, services=services)
    except Exception as error:
        made = half_made(workload, change, error, services)
        if made is None:
            raise
        return made


def _broken_off(workload: str, history: list[Entry], services: Services) -> bool:
    """Whether the last word may be a command that broke off: said just now, no trial begun since.

    A trial that has begun would not be bound by that word; said once more it has to be.
    """
    if not history or abs(services.clock.now() - int(history[-1]["at"])) > AGAIN_SECONDS:
        return False
    trials = services.ledger.entries(workload, TRIALS)
    return not any(began_after(entry, history[-1]) for entry in trials)


def _change_id(history: list[Entry], action: str, flag: Flag, word: Word, *, again: bool) -> str:
    """Another for every word, the same where a command that broke off runs ``again``."""
    told = [action, word.who, word.reason.strip(), flag.to_json()]
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]
    last = str(history[-1]["change_id"]) if history else ""
    same = last.startswith("human#") and last.endswith(f"#{digest}")
    return last if again and same else f"human#{ledger_keys.flag_entry(len(history) + 1)}#{digest}"
