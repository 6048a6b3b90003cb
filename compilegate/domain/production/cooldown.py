"""How long after a revert no trial is begun: whatever broke production is still to be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compilegate.domain.decision import Reason
from compilegate.domain.flag_change import REVERT, TRAIN
from compilegate.domain.utc import minute

DAY_SECONDS = 86_400


def cooling_down(
    history: Sequence[Mapping[str, Any]], days: float, *, now: int, workload: str
) -> Reason | None:
    """Why a trial is not begun yet, None once it may be; times in epoch seconds.

    ``history`` is every change of the flag, oldest first. Only a revert by the probation starts
    the time; a person's word after it ends it, whatever it is.
    """
    if not history or (history[-1]["by"], history[-1]["action"]) != (TRAIN, REVERT):
        return None
    last = history[-1]
    until = int(last["at"]) + round(days * DAY_SECONDS)
    if until <= now:
        return None
    told = str(last["reason"]).rstrip(".")
    return Reason(
        "cooling_down",
        f"the flag was reverted on {minute(int(last['at']))} ({told}); no trial is begun before "
        f"{minute(until)} (policy.cooldown_days: {days:g}). Once the cause is known, "
        f'`compilegate flag revert {workload} --reason "…"` ends the wait, or set '
        "policy.cooldown_days to 0",
    )
