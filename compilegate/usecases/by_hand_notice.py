"""What people are told when one of them has changed a flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compilegate.domain.errors import CompilegateError
from compilegate.domain.flag import parse_flag
from compilegate.domain.flag_change import HUMAN
from compilegate.domain.notification import Notification, command_at
from compilegate.ports import Services
from compilegate.usecases.registration import load_registration


def by_hand_notice(workload: str, entry: Mapping[str, Any], services: Services) -> Notification:
    """The change as the ledger's entry has it, and the command that shows it among the others."""
    stage, flag = services.settings.stage, parse_flag(str(entry["to"]))
    who = str(entry["by"]).removeprefix(HUMAN)
    what = (
        f"turned the compiler on ({flag.candidate})" if flag.enabled else "turned the compiler off"
    )
    act = command_at(f"compilegate flag history {workload}", stage)
    return Notification(
        kind="changed",
        stage=stage,
        subject=f"[compilegate {stage}] {workload}: {who} {what}: {entry['reason']}",
        text=f"{workload}: {who} {what}: {entry['reason']}\n\nEvery change: {act}\n",
        workload=workload,
        owner=_owner(workload, services),
        decision_id=entry["decision_id"],
        flag={"name": entry["flag"], "enabled": flag.enabled, "state": flag.state},
        figures={"by": entry["by"], "version": entry["version"], "candidate": flag.candidate},
        act=act,
    )


def _owner(workload: str, services: Services) -> str | None:
    """Whose workload it is; None where it was never registered or that cannot be read."""
    try:
        return load_registration(services.store, workload).owner
    except (CompilegateError, KeyError, ValueError):
        return None
