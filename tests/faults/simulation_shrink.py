"""The smallest schedule that still fails: what is not needed for the failure is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.faults.simulation_schedule import Act, Schedule, Team

Fails = Callable[[Schedule], bool]
TRIES = 600


def shrunk(schedule: Schedule, fails: Fails, tries: int = TRIES) -> Schedule:
    """A schedule of which no single part can be left out; ``fails`` is asked at most ``tries``.

    First halves of the acts are left out, then quarters, then single parts (delta debugging,
    Zeller and Hildebrandt 2002, IEEE Trans. Softw. Eng. 28:183).
    """
    left = tries
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _smaller(schedule):
            left -= 1
            if fails(candidate):
                schedule, smaller = candidate, True
                break
            if left <= 0:
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with less in them, those with much less first."""
    for acts in _fewer(schedule.acts):
        yield replace(schedule, acts=acts)
    for key in schedule.lies:
        yield replace(schedule, lies={k: v for k, v in schedule.lies.items() if k != key})
    for team in schedule.teams if len(schedule.teams) > 1 else ():
        acts = tuple(_of_fewer(act, 1) for act in schedule.acts)
        yield replace(schedule, teams=(team,), acts=acts)
    used = [one.of % len(schedule.teams) for act in schedule.acts for one in act.inner()]
    if len(schedule.teams) > 1 and max(used, default=0) < len(schedule.teams) - 1:
        acts = tuple(_of_fewer(act, len(schedule.teams)) for act in schedule.acts)
        yield replace(schedule, teams=schedule.teams[:-1], acts=acts)
    for number, team in enumerate(schedule.teams):
        for plain in _plainer(team):
            teams = (*schedule.teams[:number], plain, *schedule.teams[number + 1 :])
            yield replace(schedule, teams=teams)


def _fewer(acts: tuple[Act, ...]) -> Iterator[tuple[Act, ...]]:
    size = len(acts) // 2
    while size > 1:
        for start in range(0, len(acts), size):
            yield acts[:start] + acts[start + size :]
        size //= 2
    for number, act in enumerate(acts):
        before, after = acts[:number], acts[number + 1 :]
        yield before + after
        for less in _less(act):
            yield (*before, less, *after)


def _less(act: Act) -> Iterator[Act]:
    for within in _fewer(act.within):
        yield replace(act, within=within)
    for clean_up in _fewer(act.clean_up):
        yield replace(act, clean_up=clean_up)
    if act.event != "once":
        yield replace(act, event="once")
    if act.how:
        yield replace(act, how="")


def _of_fewer(act: Act, teams: int) -> Act:
    """The same workload, by a number that means the same where there are fewer."""
    return replace(
        act,
        of=act.of % teams,
        within=tuple(_of_fewer(one, teams) for one in act.within),
        clean_up=tuple(_of_fewer(one, teams) for one in act.clean_up),
    )


def _plainer(team: Team) -> Iterator[Team]:
    usual = Team()
    for name in ("lie", "runs", "approval", "truth"):
        if getattr(team, name) != getattr(usual, name):
            yield replace(team, **{name: getattr(usual, name)})
