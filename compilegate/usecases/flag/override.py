"""Manual changes of a flag: on with a candidate that was planned, or off.

Manual overrides outrank automated decisions: evidence from before one cannot overrule it. An
override is therefore recorded even where it changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.flag import Flag, promoted
from compilegate.domain.flag_change import FlagChange, began_after
from compilegate.domain.notification import command_at
from compilegate.domain.planning.arm_plan import CANDIDATE
from compilegate.domain.production.history import history
from compilegate.domain.records.flags import HUMAN, FlagVersion
from compilegate.domain.records.trials import TrialDecided
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import (
    Changed,
    change_flag,
    flag_versions,
    half_made,
    latest_flag,
)
from compilegate.usecases.records import Trial, load_record

SET, REVERT_BY_HAND = "set", "revert"
PROMOTE = "promote"
TRIALS = "trial#"  # sort keys of what trials leave in the ledger
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
class PlannedCandidate:
    """A candidate as the newest trial that decided on it has planned it.

    ``proven`` says whether that trial promoted this very candidate.
    """

    name: str
    trial: str
    flag: Flag
    verdict: str
    proven: bool
    details: Mapping[str, Any] = field(default_factory=dict)


def planned_candidates(workload: str, services: Services) -> dict[str, PlannedCandidate]:
    """Every candidate whose overrides a decided trial has recorded, by name."""
    candidates: dict[str, PlannedCandidate] = {}
    decided = history(services.ledger.entries(workload, TRIALS)).decided
    for decision in sorted(decided, key=lambda one: one.at, reverse=True):
        for candidate in _planned(workload, decision, services):
            candidates.setdefault(candidate.name, candidate)
    return candidates


def find_candidate(workload: str, name: str, services: Services) -> PlannedCandidate:
    """A recorded candidate; raises InvalidInputError that names the recorded ones."""
    candidates = planned_candidates(workload, services)
    if name not in candidates:
        fix = f"use one of {', '.join(sorted(candidates))}" if candidates else (
            f"run a trial of {workload} first, so that its overrides are recorded"
        )  # fmt: skip
        problem = "is not a candidate that a decided trial of this workload has planned"
        raise InvalidInputError(problem, field="--candidate", value=name, fix=fix)
    return candidates[name]


def set_by_hand(
    workload: str, candidate: PlannedCandidate, override: Override, *, services: Services
) -> Changed:
    """Turn the flag on with a candidate, in probation so that production is watched."""
    details = {"trial": candidate.trial, **candidate.details}
    return _say(workload, SET, candidate.flag, override, details=details, services=services)


def revert_by_hand(workload: str, override: Override, *, services: Services) -> Changed:
    """Turn the flag off; one that is off stays so, and the override is kept.

    Raises InvalidInputError for a workload without a ledger.
    """
    if not services.ledger.entries(workload):
        raise InvalidInputError(
            "is not a workload that this stage knows", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', services.settings.stage)}`",
        )  # fmt: skip
    now, _ = latest_flag(workload, services)
    state = "reverted" if now.enabled else now.state
    off = Flag(False, state, now.candidate, decision_id=now.decision_id)
    return _say(workload, REVERT_BY_HAND, off, override, details={}, services=services)


def _planned(workload: str, decided: TrialDecided, services: Services) -> list[PlannedCandidate]:
    """The candidates of a decided trial; none where it was refused before it was planned."""
    trial = Trial(workload, decided.trial, "")
    try:
        arms = load_record(services.store, trial, "plan")["arms"]
    except NotFoundError:
        return []
    details = {
        "decision_key": decided.decision_key,
        "evidence_key": trial.record_key("evidence"),
    }
    return [
        PlannedCandidate(
            name=arm["name"],
            trial=trial.trial,
            flag=promoted(arm, arms[0], decision_id=decided.decision_id),
            verdict=decided.verdict,
            proven=(decided.verdict, decided.candidate) == (PROMOTE, arm["name"]),
            details=details,
        )
        for arm in arms
        if arm["role"] == CANDIDATE
    ]


def _say(
    workload: str,
    action: str,
    flag: Flag,
    override: Override,
    *,
    details: Mapping[str, Any],
    services: Services,
) -> Changed:
    versions = flag_versions(workload, services)
    again = _broken_off(workload, versions, services)
    change = FlagChange(
        change_id=_change_id(versions, action, flag, override, again=again),
        by=f"{HUMAN}{override.who}",
        action=action,
        flag=flag,
        reason=override.reason.strip(),
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


def _broken_off(workload: str, versions: Sequence[FlagVersion], services: Services) -> bool:
    """Whether the last override may be an interrupted command: recent, no trial since.

    A trial that has begun since is not bound by that override, so that a new one is needed.
    """
    if not versions or abs(services.clock.now() - versions[-1].at) > AGAIN_SECONDS:
        return False
    trials = history(services.ledger.entries(workload, TRIALS)).started
    return not any(began_after(trial, versions[-1]) for trial in trials)


def _change_id(
    versions: Sequence[FlagVersion], action: str, flag: Flag, override: Override, *, again: bool
) -> str:
    """A new one for every override, the same where an interrupted command runs ``again``."""
    parts = [action, override.who, override.reason.strip(), flag.to_json()]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
    last = versions[-1].change_id if versions else ""
    same = last.startswith("human#") and last.endswith(f"#{digest}")
    return last if again and same else f"human#{ledger_keys.flag_entry(len(versions) + 1)}#{digest}"
