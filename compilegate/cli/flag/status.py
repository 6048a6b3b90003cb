"""One workload's flag: the parameter, the ledger, and the latest manual override."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag
from compilegate.domain.flag_change import agrees, flag_of
from compilegate.domain.records.flags import FlagVersion
from compilegate.ports import Services
from compilegate.usecases.flag.change_flag import flag_versions


@dataclass(frozen=True)
class FlagStatus:
    """``flag`` is what TRAIN's next run follows, ``problem`` why it is not what the parameter says.

    ``said`` is what the parameter says, None where it cannot be read. ``change`` is the ledger's
    latest, ``human`` the latest manual one, None before any. ``agrees`` says whether the parameter
    holds what the ledger says.
    """

    workload: str
    name: str
    present: bool
    said: Flag | None
    flag: Flag
    ledger: Flag
    agrees: bool
    problem: str | None
    change: FlagVersion | None
    human: FlagVersion | None

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        change = self.change.to_entry() if self.change else {}
        human = self.human.to_entry() if self.human else {}
        keys = (
            "at", "by", "action", "reason", "trial", "decision_key", "evidence_key", "overrode",
            "approved_by",
        )  # fmt: skip
        words = ("at", "by", "action", "reason")
        return {
            "workload": self.workload,
            "name": self.name,
            "set": self.present,
            "enabled": self.flag.enabled,
            "state": self.flag.state,
            "candidate": self.flag.candidate,
            "overrides": dict(self.flag.overrides),
            "decision_id": self.flag.decision_id,
            "since": self.flag.since,
            "version": change.get("version", 0),
            "change": {key: change.get(key) for key in keys} if self.change else None,
            "human": {key: human[key] for key in words} if human else None,
            "agrees": self.agrees,
            "problem": self.problem,
        }


def flag_status(workload: str, services: Services) -> FlagStatus:
    """The flag as it stands; a parameter that cannot be read is off, as production takes it."""
    name = naming.flag_parameter(services.settings.stage, workload)
    raw, versions = services.flags.read(name), flag_versions(workload, services)
    fits, stored, problem = agrees(raw, versions), None, None
    try:
        stored = parse_flag(raw)
    except InvalidInputError as error:
        problem = str(error)
    if stored is not None and stored.enabled and not fits:
        problem = f"it says on ({stored.candidate}), but no recorded change turned it on"
    words = [version for version in versions if version.by_human]
    return FlagStatus(
        workload=workload,
        name=name,
        present=raw is not None,
        said=stored,
        flag=stored if stored is not None and problem is None else OFF,
        ledger=flag_of(versions),
        agrees=fits,
        problem=problem,
        change=versions[-1] if versions else None,
        human=words[-1] if words else None,
    )
