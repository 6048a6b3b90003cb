"""Manual changes of a flag: on with a candidate that was planned, or off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compilegate.domain import flag_change, ledger_keys
from compilegate.domain.claims import command_at
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.trial.plan import (
    PlannedCandidate,
    candidate_named,
    planned_candidates,
)
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import (
    Changed,
    change_flag,
    changed_by,
    flag_versions,
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
    workload: str,
    candidate: PlannedCandidate,
    override: flag_change.Override,
    *,
    services: Services,
) -> Changed:
    """Turn the flag on with a candidate, in probation so that production is watched."""
    return _override(
        workload, flag_change.SET, candidate.flag, override, services, details=candidate.details
    )


def revert_by_hand(workload: str, override: flag_change.Override, *, services: Services) -> Changed:
    """Turn the flag off; one that is off stays so, and the override is kept.

    Raises InvalidInputError for a workload without a ledger.
    """
    if not services.ledger.history(workload).records:
        raise InvalidInputError(
            "is not a workload that this stage knows", field="WORKLOAD", value=workload,
            fix=f"see `{command_at('compilegate status', services.settings.stage)}`",
        )  # fmt: skip
    now, _ = latest_flag(workload, services)
    return _override(
        workload, flag_change.REVERT_BY_HAND, flag_change.turned_off(now), override, services
    )


def _override(
    workload: str,
    action: str,
    flag: Flag,
    override: flag_change.Override,
    services: Services,
    *,
    details: Mapping[str, Any] | None = None,
) -> Changed:
    """Make the change; one that the ledger has but the parameter has not yet is made as well."""
    change = flag_change.override_change(
        action,
        flag,
        override,
        flag_versions(workload, services),
        services.ledger.history(workload, ledger_keys.TRIAL_ENTRIES).started,
        now=services.clock.now(),
        details=details,
    )
    try:
        return change_flag(workload, change, services=services)
    except Exception as error:
        made = flag_change.same_change(flag_versions(workload, services), change.change_id)
        if made is None:
            raise
        return replace(changed_by(made), unwritten=f"{error}")
