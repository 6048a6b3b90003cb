"""A schedule: workloads, what happens to them in which order, and within what; from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tests.faults.world import Truth

Document = dict[str, Any]

# Candidates that are clearly good or clearly bad: a wrong flag is a fault, never bad luck.
SPEEDUPS = (0.8, 1.0, 1.04, 1.3, 1.4, 1.4, 1.6, 2.0)
LOSSES = (0.0, 0.0, 0.0, 0.0, 0.02, 0.05)
# What a job leaves instead of its evidence (simulation_jobs.py): in one job, or in every one.
# The last four are of half the work, by which an arm looks fast.
LIES = ("missing", "partial", "one_sided", "duplicate_keys", "unfinished", "broken",
        "half_steps", "half_untold", "half_samples", "half_in_full_runs")  # fmt: skip
ENDS = ("out_of_memory", "no_capacity", "stopped_by_others", "time_limit")
# In the middle of a function or a call of the machine.
FAULTS = ("refused", "answer_lost", "answer_late", "dies", "times_out", "outage", "stop", "clock")
# What people and clocks do; each may happen in the middle of another act.
PEOPLE = ("approve", "reject", "flag_off", "flag_on", "unlock", "stop", "repair", "retire",
          "register", "same_again", "deploy")  # fmt: skip
# About as many moments an act has; a fault that is put behind the last one does not happen.
MOMENTS = {"trial": 560, "train": 110, "sweep": 40, "digest": 20, "retire": 16, "unlock": 24}


@dataclass(frozen=True)
class Team:
    """A workload: its candidate, who makes the full runs, what its jobs leave (``lie`` of LIES)."""

    truth: Truth = field(default_factory=Truth)
    runs: str = "shadow"
    approval: bool = False
    lie: str = ""


@dataclass(frozen=True)
class Act:
    """Something that happens: ``at`` the so-manieth moment of the act that it happens within.

    ``event`` is how the event of an execution's bad end arrives: ``once``, ``lost``, ``twice``, at
    ``once`` more, or ``late``, after the next act; ``clean_up`` happens within its function.
    ``how`` is a detail of the kind.
    """

    do: str
    of: int = 0
    at: int = 0
    how: str = ""
    event: str = "once"
    within: tuple[Act, ...] = ()
    clean_up: tuple[Act, ...] = ()

    def inner(self) -> Iterator[Act]:
        """This one and all within it."""
        yield self
        for one in (*self.within, *self.clean_up):
            yield from one.inner()

    def document(self) -> Document:
        """As JSON; what is as usual is left out."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("within", "clean_up"):
            values[name] = [one.document() for one in values[name]]
        usual = {**asdict(Act("")), "within": [], "clean_up": []}
        return {name: value for name, value in values.items() if value != usual[name]}

    @classmethod
    def read(cls, document: Document) -> Act:
        """From its JSON."""
        parts = {
            name: tuple(cls.read(one) for one in document.get(name, ()))
            for name in ("within", "clean_up")
        }
        return cls(**{**document, **parts})


@dataclass(frozen=True)
class Schedule:
    """``seed`` makes figures vary; ``lies`` maps a job's number to what it leaves, or its end."""

    seed: int
    teams: tuple[Team, ...] = (Team(),)
    acts: tuple[Act, ...] = ()
    lies: dict[str, str] = field(default_factory=dict)

    def document(self) -> Document:
        """As JSON."""
        return {**asdict(self), "acts": [act.document() for act in self.acts]}

    @classmethod
    def read(cls, document: Document) -> Schedule:
        """From its JSON."""
        teams = (replace(Team(**one), truth=Truth(**one["truth"])) for one in document["teams"])
        acts = tuple(Act.read(one) for one in document["acts"])
        return cls(document["seed"], tuple(teams), acts, dict(document["lies"]))

    def count_lies(self) -> int:
        """How many lies it tells."""
        return len(self.lies) + sum(bool(team.lie) for team in self.teams)


def schedule(seed: int) -> Schedule:
    """The schedule of a seed, the same each time."""
    return _Making(random.Random(seed)).schedule(seed)


class _Making:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def schedule(self, seed: int) -> Schedule:
        teams = tuple(self._team() for _ in range(self.chance.choice((1, 1, 2, 2, 3))))
        acts = [
            self._act(name, of)
            for of in range(len(teams))
            for name in ("trial", *self._some(self._main_act, (0, 0, 1, 2)))
        ]
        acts += self._some(lambda: self._act(self.chance.choice((*PEOPLE, "sweep"))), (0, 1, 2, 3))
        self.chance.shuffle(acts)
        acts = [replace(act, of=act.of % len(teams)) for act in acts]
        kinds = (*LIES, *ENDS)
        lies = {
            str(self.chance.randrange(12)): self.chance.choice(kinds)
            for _ in range(self.chance.choice((0, 0, 0, 1, 2)))
        }
        return Schedule(seed, teams, tuple(self._faulty(act, len(teams)) for act in acts), lies)

    def _team(self) -> Team:
        return Team(
            truth=Truth(self.chance.choice(SPEEDUPS), self.chance.choice(LOSSES)),
            runs=self.chance.choice(("shadow", "shadow", "shadow", "shadow", "canary")),
            approval=self.chance.random() < 0.25,
            lie=self.chance.choice(LIES) if self.chance.random() < 0.2 else "",
        )

    def _main_act(self) -> str:
        return self.chance.choice(("train", "train", "trial", "sweep"))

    def _some(self, make: Callable[[], Any], numbers: tuple[int, ...]) -> list[Any]:
        return [make() for _ in range(self.chance.choice(numbers))]

    def _act(self, name: str, of: int = -1) -> Act:
        how = {"trial": ("agree", "agree", "refuse", "silent"), "train": ("scheduled", "by_hand")}
        return Act(
            name,
            of=of if of >= 0 else self.chance.randrange(6),
            how=self.chance.choice(how.get(name, ("",))),
        )

    def _faulty(self, act: Act, teams: int, depth: int = 0) -> Act:
        """The act with faults and other acts within it."""
        most = {"trial": (0, 1, 2, 3, 4, 5), "train": (0, 1, 2, 3)}.get(act.do, (0, 0, 0, 1))
        within = self._some(lambda: self._inner(act, teams, depth), most)
        bad = any(one.do in FAULTS for one in within)
        return replace(
            act,
            within=tuple(sorted(within, key=lambda one: one.at)),
            event=self.chance.choice(("once", "once", "once", "lost", "twice", "late")),
            clean_up=tuple(self._some(self._in_clean_up, (0, 1, 2, 3) if bad else (0, 0, 1))),
        )

    def _inner(self, act: Act, teams: int, depth: int) -> Act:
        at = int(MOMENTS.get(act.do, 12) * self.chance.random() ** 1.3)
        if depth > 1 or self.chance.random() < 0.72:
            return self._fault(at)
        name = self.chance.choice((*PEOPLE, *PEOPLE, "trial", "train", "train", "sweep", "stop"))
        other = self.chance.randrange(teams) if self.chance.random() < 0.3 else act.of % teams
        return replace(self._faulty(self._act(name, other), teams, depth + 1), at=at)

    def _fault(self, at: int) -> Act:
        name = self.chance.choice((*FAULTS, "refused", "dies"))
        return Act(name, at=at, how=str(self.chance.randrange(3)))

    def _in_clean_up(self) -> Act:
        name = self.chance.choice(("refused", "answer_lost", "dies", "outage", "outage"))
        return Act(name, at=int(36 * self.chance.random()), how=str(self.chance.randrange(3)))
