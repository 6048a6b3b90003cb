"""Manual changes of a flag: on with a candidate that was planned, or off."""

from __future__ import annotations

from compilegate.domain import ledger_keys
from compilegate.domain.claims import command_at
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag_change import SET, Override, RequestedFlag, override_change, turned_off
from compilegate.domain.trial.planned_candidates import (
    PlannedCandidate,
    candidate_named,
    planned_candidates,
)
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import (
    Changed,
    change_flag,
    flag_versions,
    half_made,
    latest_flag,
)
from compilegate.usecases.records import Trial, find_plan


def find_candidate(workload: str, name: str, services: Services) -> PlannedCandidate:
    """A candidate that a decided trial has planned; raises InvalidInputError that names those."""
    planned = []
    for decided in services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES).decided:
        plan = find_plan(services.store, Trial(workload, decided.trial, ""))
        if plan is not None:  # None: refused before it was planned
            planned.append((decided, plan))
    return candidate_named(name, planned_candidates(workload, planned), workload)


def set_by_hand(
    workload: str, candidate: PlannedCandidate, override: Override, *, services: Services
) -> Changed:
    """Turn the flag on with a candidate, in probation so that production is watched."""
    requested = RequestedFlag(SET, candidate.flag, candidate.details)
    return _override(workload, requested, override, services)


def revert_by_hand(workload: str, override: Override, *, services: Services) -> Changed:
    """Turn the flag off; one that is off stays so, and the override is kept.

    Raises InvalidInputError for a workload without a ledger.
    """
    if not services.ledger.history(workload).records:
        raise InvalidInputError(
            "is not a workload that this stage knows", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', services.settings.stage)}`",
        )  # fmt: skip
    now, _ = latest_flag(workload, services)
    return _override(workload, turned_off(now), override, services)


def _override(
    workload: str, requested: RequestedFlag, override: Override, services: Services
) -> Changed:
    versions = flag_versions(workload, services)
    trials = services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES).started
    change = override_change(requested, override, versions, trials, now=services.clock.now())
    try:
        return change_flag(workload, change, services=services)
    except Exception as error:
        made = half_made(workload, change, error, services)
        if made is None:
            raise
        return made
