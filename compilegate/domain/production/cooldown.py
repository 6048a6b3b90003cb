"""How long after a revert no trial is started: the cause has to be found first."""

from __future__ import annotations

from collections.abc import Sequence

from compilegate.domain.flag_change import REVERT, TRAIN
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.utc import minute

DAY_SECONDS = 86_400


def cooling_down(
    versions: Sequence[FlagVersion], days: float, *, now: int, workload: str
) -> Reason | None:
    """Why a trial is not begun yet, None once it may be; times in epoch seconds.

    ``versions`` is every change of the flag, oldest first. Only a revert by the probation starts
    the time; a manual change after it ends it, whatever it is.
    """
    if not versions or (versions[-1].by, versions[-1].action) != (TRAIN, REVERT):
        return None
    last = versions[-1]
    until = last.at + round(days * DAY_SECONDS)
    if until <= now:
        return None
    reason = last.reason.rstrip(".")
    return Reason(
        "cooling_down",
        f"the flag was reverted on {minute(last.at)} ({reason}); no trial starts before "
        f"{minute(until)} (policy.cooldown_days: {days:g})",
        fix=f'once the cause is known, `compilegate flag revert {workload} --reason "…"` ends the '
        "wait, or set policy.cooldown_days to 0",
    )
