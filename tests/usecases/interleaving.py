"""Runs writers against the same stores in an order that is chosen call by call.

Every call on the ledger and the flag store, or on the services that are named, is a step; between
two steps of a writer any other may take its own, and a writer may crash before a step or after it
was applied.

A writer knows what its calls answered and nothing else. Two orders after which all services are
the same, and each writer has got the same answers, can go on in the same ways: those of one are
tried.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

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
            self._heard.append(repr(answer))
            return answer

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
    """The services with these stepped; what their calls answer is appended to ``heard``."""
    stores: Any = {name: Stepped(getattr(services, name), take_turn, heard) for name in ports}
    return replace(services, **stores)


class _Writer(threading.Thread):
    """One writer; ``proceed`` lets it take one step, and returns when it is at its next."""

    def __init__(
        self, work: Callable[[Services], Any], services: Services, ports: Sequence[str]
    ) -> None:
        super().__init__(daemon=True)
        self.heard: list[str] = []
        self._work = work
        self._services = stepped(services, self._take_turn, ports, self.heard)
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._how = GO
        self.finished = self.crashed = False
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._work(self._services)
        except Crash:
            self.crashed = True
        except Exception as error:  # noqa: BLE001 - raised again in the caller
            self.error = error
        self.finished = True
        self._theirs.release()

    def begin(self) -> None:
        """Up to its first step."""
        self.start()
        self._theirs.acquire()

    def proceed(self, how: str) -> None:
        """One step, up to the next."""
        self._how = how
        self._mine.release()
        self._theirs.acquire()

    def _take_turn(self) -> str:
        self._theirs.release()
        self._mine.acquire()
        return self._how


@dataclass(frozen=True)
class Run:
    """What happened: the moves made, those that could have been made, and who crashed.

    ``states`` tells the moments before each move apart.
    """

    moves: list[Move]
    states: list[Hashable]
    possible: list[list[Move]]
    crashed: list[int]


def run(
    services: Services,
    works: Sequence[Callable[[Services], Any]],
    choose: Callable[[int, list[Move]], Move],
    crashes: int = 0,
    ports: Sequence[str] = STORES,
) -> Run:
    """Let the writers go on as ``choose`` says of each step's possible moves."""
    writers = [_Writer(work, services, ports) for work in works]
    for writer in writers:
        writer.begin()
    moves: list[Move] = []
    possible: list[list[Move]] = []
    states: list[Hashable] = []
    while waiting := [index for index, writer in enumerate(writers) if not writer.finished]:
        spent = sum(how != GO for _, how in moves)
        ways = (GO, BEFORE, AFTER) if spent < crashes else (GO,)
        states.append((spent, _state(services, writers)))
        possible.append([(index, how) for how in ways for index in waiting])
        moves.append(choose(len(moves), possible[-1]))
        index, how = moves[-1]
        writers[index].proceed(how)
    for writer in writers:
        writer.join()
        if writer.error is not None:
            raise writer.error
    return Run(moves, states, possible, [i for i, writer in enumerate(writers) if writer.crashed])


def _state(services: Services, writers: Sequence[_Writer]) -> Hashable:
    """All that is stored, and all that each writer knows. Equal states are the same."""
    stored = [vars(getattr(services, one.name)) for one in fields(services)
              if hasattr(getattr(services, one.name), "__dict__")]  # fmt: skip
    known = [(writer.finished, writer.crashed, writer.heard) for writer in writers]
    looks = repr((stored, known))
    # Of two orders that come to the same state none could be left out: there would be no end.
    assert " object at 0x" not in looks, "an object that shows its address is in every state new"
    return hash(looks)


def every_run(
    make: Callable[[], Services],
    works: Sequence[Callable[[Services], Any]],
    crashes: int = 0,
    ports: Sequence[str] = STORES,
) -> Iterator[tuple[Services, Run]]:
    """Every order of the writers' steps, with up to so many crashes, each on fresh services.

    Of orders that come to the same state on their way, one goes on.
    """
    beginnings: list[list[Move]] = [[]]
    met: set[Hashable] = set()
    while beginnings:
        begin = beginnings.pop()

        def choose(at: int, moves: list[Move], begin: list[Move] = begin) -> Move:
            return begin[at] if at < len(begin) else moves[0]

        services = make()
        done = run(services, works, choose, crashes, ports)
        for at in range(len(begin), len(done.moves)):
            if done.states[at] in met:
                break
            met.add(done.states[at])
            others = [move for move in done.possible[at] if move != done.moves[at]]
            beginnings += [[*done.moves[:at], move] for move in others]
        yield services, done
