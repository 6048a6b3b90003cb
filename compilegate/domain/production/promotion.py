"""The promotion that a flag stands for, and how long no trial starts after its revert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import REVERT, TRAIN, Versions, flag_of
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.utc import minute

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Promotion:
    """A candidate that is on, and the trial that measured it.

    ``at`` is when it was turned on, ``since`` when the flag took its present state (epoch
    seconds); ``version`` is that of the flag's latest change. ``by_human``: a person turned on
    what a trial had planned, with or without a measurement.
    """

    trial: str
    candidate: str
    at: int
    since: int
    flag: Flag
    version: int
    by_human: bool = False


def standing_promotion(versions: Versions) -> Promotion | None:
    """What is on, and the trial whose evidence it is compared with; None where there is none.

    A person who turns on what a trial has planned begins a promotion of their own; what no trial
    has planned has nothing to be compared with.
    """
    flag, proven = flag_of(versions), latest_promotion(versions)
    if not flag.enabled or flag.candidate is None or proven is None:
        return None
    was = proven.flag
    if (was.candidate, was.overrides) != (flag.candidate, flag.overrides):
        return None
    of_this_state = takewhile(
        lambda one: one.flag.enabled and one.flag.state == flag.state, reversed(versions)
    )
    return Promotion(
        trial=str(proven.trial),
        candidate=flag.candidate,
        at=proven.at,
        since=[one.at for one in of_this_state][-1],
        flag=flag,
        version=len(versions),
        by_human=proven.by_human,
    )


def latest_promotion(versions: Versions) -> FlagVersion | None:
    """The version by which a trial last turned a candidate on, None where none ever has."""
    return next(reversed(promotions(versions)), None)


def promotions(versions: Versions) -> Sequence[FlagVersion]:
    """The versions by which a trial's candidate was turned on, oldest first.

    What the watch changes does not count.
    """
    return [
        version
        for version in versions
        if version.trial is not None and version.by != TRAIN and version.flag.enabled
    ]


def cooling_down(
    versions: Sequence[FlagVersion], days: float, *, now: int, workload: str
) -> Reason | None:
    """Why a trial is not begun yet, None once it may be; times in epoch seconds.

    ``versions`` is every change of the flag, oldest first. Only a revert by the probation starts
    the time; any manual change after it ends it.
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
