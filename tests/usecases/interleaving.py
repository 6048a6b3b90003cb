"""Runs writers against the same stores in an order that is chosen call by call.

Every call on the ledger and the flag store, or on the services that are named, is a step; between
two steps of a writer any other may take its own, and a writer may crash before a step or after it
was applied.

A writer knows what its calls answered and nothing else. Two orders after which all services are
the same, and each writer has got the same answers, can go on in the same ways: those of one are
tried.

Writers take turns on one thread, as greenlets: their calls would only wait for one another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from greenlet import greenlet

from compilegate.ports import Services

GO, BEFORE, AFTER = "go", "crash before", "crash after"
Move = tuple[int, str]  # which writer goes on, and how


class Crash(BaseException):
    """The writer's process is gone; no ``except Exception`` may survive it."""


class Stepped:
    """A store whose every call waits for its turn."""

    def __init__(
        self, store: Any, take_turn: Callable[[], str], heard: list[str] | None = None
    ) -> None:
        self._store, self._take_turn = store, take_turn
        self._heard = [] if heard is None else heard

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        if not callable(call):
            return call

        def stepped(*arguments: Any, **named: Any) -> Any:
            how = self._take_turn()
            if how == BEFORE:
                raise Crash
            try:
                answer = call(*arguments, **named)
            except Exception as error:
                self._heard.append(repr(error))
                raise
            if how == AFTER:
                raise Crash
            lazy = isinstance(answer, Iterator)  # which shows no more than its address
            answer = list(answer) if lazy else answer
            self._heard.append(repr(answer))
            return iter(answer) if lazy else answer

        return stepped


def beside(store: Any, other: Any) -> Any:
    """Another service whose calls are steps of the writer that has this stepped store."""
    return Stepped(other, store._take_turn, store._heard)


# The services whose calls are steps, unless others are named.
STORES = ("ledger", "flags")


def stepped(
    services: Services,
    take_turn: Callable[[], str],
    ports: Sequence[str] = STORES,
    heard: list[str] | None = None,
) -> Services:
    """The services with these stepped; answers of all calls are appended to ``heard``."""
    all_ports: Any = {
        name: Stepped(getattr(services, name), take_turn if name in ports else lambda: GO, heard)
        for name in (one.name for one in fields(services))
        if name != "settings"
    }
    return replace(services, **all_ports)


class _Writer:
    """One writer; ``proceed`` lets it take one step, and returns when it is at its next."""

    def __init__(
        self, work: Callable[[Services], Any], services: Services, ports: Sequence[str]
    ) -> None:
        self.heard: list[str] = []
        self._work = work
        self._services = stepped(services, self._take_turn, ports, self.heard)
        self._turns = greenlet(self._run)
        self.finished = self.crashed = False

    def _run(self, _first: str) -> None:
        try:
            self._work(self._services)
        except Crash:
            self.crashed = True
        finally:
            self.finished = True

    def proceed(self, how: str) -> None:
        """One step, up to the next; at first only up to the first. An error is raised here."""
        self._turns.switch(how)

    def _take_turn(self) -> str:
        how: str = self._turns.parent.switch()
        return how


@dataclass(frozen=True)
class Run:
    """What happened: the moves made, and who crashed."""

    moves: list[Move]
    crashed: list[int]


class _MetBeforeError(Exception):
    """What follows was tried."""


_Choose = Callable[[list[Move], list[Move], Callable[[], Hashable]], Move]


def run(
    services: Services,
    works: Sequence[Callable[[Services], Any]],
    choose: Callable[[int, list[Move]], Move],
    crashes: int = 0,
    ports: Sequence[str] = STORES,
) -> Run:
    """Let the writers go on as ``choose`` says of each step's possible moves."""
    return _run(services, works, lambda made, moves, _: choose(len(made), moves), crashes, ports)


def _run(
    services: Services,
    works: Sequence[Callable[[Services], Any]],
    choose: _Choose,
    crashes: int,
    ports: Sequence[str],
) -> Run:
    """As ``run``; ``choose`` takes the moves made, those possible, and what computes the state."""
    writers = [_Writer(work, services, ports) for work in works]
    for writer in writers:
        writer.proceed(GO)
    moves: list[Move] = []
    try:
        while waiting := [index for index, writer in enumerate(writers) if not writer.finished]:
            spent = sum(how != GO for _, how in moves)
            ways = (GO, BEFORE, AFTER) if spent < crashes else (GO,)
            possible = [(index, how) for how in ways for index in waiting]
            index, how = choose(moves, possible, partial(_state, spent, services, writers))
            moves.append((index, how))
            writers[index].proceed(how)
    finally:  # who stands at a step of a run that was stopped
        for writer in writers:
            while not writer.finished:
                writer.proceed(BEFORE)
    return Run(moves, [i for i, writer in enumerate(writers) if writer.crashed])


def _state(spent: int, services: Services, writers: Sequence[_Writer]) -> Hashable:
    """All that is stored, and all that each writer knows. Equal states are the same."""
    stored = [vars(getattr(services, one.name)) for one in fields(services)
              if hasattr(getattr(services, one.name), "__dict__")]  # fmt: skip
    known = [(writer.finished, writer.crashed, writer.heard) for writer in writers]
    looks = repr((spent, stored, known))
    # Of two orders that come to the same state none could be left out: there would be no end.
    assert " at 0x" not in looks, "an object that shows its address is in every state new"
    return hash(looks)


def every_run(
    make: Callable[[], Services],
    works: Sequence[Callable[[Services], Any]],
    crashes: int = 0,
    ports: Sequence[str] = STORES,
) -> Iterator[tuple[Services, Run]]:
    """Every order of the writers' steps, with up to so many crashes, each on fresh services.

    Of orders that come to the same state on their way, one goes on to its end.
    """
    beginnings: list[list[Move]] = [[]]
    met: set[Hashable] = set()

    def going_on_from(begin: list[Move]) -> _Choose:
        def choose(made: list[Move], moves: list[Move], state: Callable[[], Hashable]) -> Move:
            if len(made) < len(begin):
                return begin[len(made)]
            if (now := state()) in met:
                raise _MetBeforeError
            met.add(now)
            first, *others = moves
            beginnings.extend([*made, other] for other in others)
            return first

        return choose

    while beginnings:
        services = make()
        with suppress(_MetBeforeError):
            yield services, _run(services, works, going_on_from(beginnings.pop()), crashes, ports)
