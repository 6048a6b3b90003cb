"""Changes a flag exactly once: the ledger first, then the parameter, until the two agree.

The ledger decides. A change is appended under the next version, on the condition that this version
does not exist; a writer that loses the race reads and decides again. Parameter Store has no
conditional write, so a slow writer could put an older value over a newer one: therefore every
writer reads the ledger after the parameter, and writes again until it has written the latest
value. Running the same change again repairs a crash anywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compilegate.domain import flag_change, ledger_keys, naming
from compilegate.domain.claims import command_at
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.records.flags import Author, FlagVersion
from compilegate.domain.trial.plan import (
    PlannedCandidate,
    candidate_named,
    planned_candidates,
)
from compilegate.ports import Services
from compilegate.usecases.records import Trial, find_plan

logger = logging.getLogger("compilegate")


@dataclass(frozen=True)
class Changed:
    """The outcome of a change.

    ``flag`` and ``version`` are the change's own where it was made, else those that stand.
    ``overrode`` is the manual change that it replaced, ``held_by`` the one that it may not,
    ``superseded_by`` the change that has taken the place of what it judged.
    ``unwritten`` says why the parameter does not hold yet what the ledger says, None where it does.
    """

    changed: bool
    flag: Flag
    version: int
    overrode: Author | None = None
    held_by: Author | None = None
    superseded_by: Author | None = None
    unwritten: str | None = None


def change_flag(workload: str, change: FlagVersion, *, services: Services) -> Changed:
    """Make the change, or say why not; repeating it is safe and has the same result.

    The flag's ``since`` is filled in where it is None. Raises InvalidInputError for a flag that
    does not fit the parameter.
    """
    name = naming.flag_parameter(services.settings.stage, workload)
    while True:
        versions = flag_versions(workload, services)
        made = flag_change.same_change(versions, change.change_id)
        if made is None:
            holder, newer = (
                flag_change.held_by(change, versions),
                flag_change.superseded_by(change, versions),
            )
            if holder or newer or flag_change.changes_nothing(change, versions):
                repair_flag(workload, services)
                return Changed(
                    changed=False,
                    flag=flag_change.flag_of(versions),
                    version=len(versions),
                    held_by=holder.author if holder else None,
                    superseded_by=newer.author if newer else None,
                )
            now = services.clock.now()
            following = flag_change.next_version(change, versions, name=name, at=now)
            made = services.ledger.put_once(workload, following)
            versions = [*versions, made]
        if made.change_id == change.change_id:
            _bring_up_to_date(workload, versions, services)
            return changed_by(made)


def changed_by(version: FlagVersion) -> Changed:
    """The outcome of the change that a version is."""
    return Changed(
        changed=True, flag=version.flag, version=version.version, overrode=version.overrode
    )


def flag_versions(workload: str, services: Services) -> Sequence[FlagVersion]:
    """Every change of a workload's flag from the ledger, oldest first."""
    return services.ledger.history(workload, ledger_keys.FLAG_ENTRIES).flags


def latest_flag(workload: str, services: Services) -> tuple[Flag, int]:
    """What the ledger says the flag is, and its version; ``(OFF, 0)`` before any change."""
    versions = flag_versions(workload, services)
    return flag_change.flag_of(versions), len(versions)


def repair_flag(workload: str, services: Services) -> bool:
    """Give the parameter the ledger's latest value; returns whether it held anything else."""
    # Parameter first: the other way round, a change between the two would be undone for a moment.
    text = services.flags.read(naming.flag_parameter(services.settings.stage, workload))
    versions = flag_versions(workload, services)
    if flag_change.agrees(text, versions):
        return False
    _bring_up_to_date(workload, versions, services)
    return True


def repair_if_possible(workload: str, services: Services) -> None:
    """Give the parameter the ledger's value; one that cannot be repaired now is at the next run."""
    try:
        repair_flag(workload, services)
    except Exception:
        logger.exception("the flag of %s could not be repaired", workload)


def _bring_up_to_date(workload: str, versions: Sequence[FlagVersion], services: Services) -> None:
    """Write the latest value until no later one was added meanwhile."""
    name = naming.flag_parameter(services.settings.stage, workload)
    while True:
        written = len(versions)
        services.flags.write(name, versions[-1].value if versions else OFF.to_json())
        versions = flag_versions(workload, services)
        if len(versions) == written:
            return


# Changes by hand.


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
