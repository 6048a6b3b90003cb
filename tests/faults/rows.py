"""The table of faults, made from undisturbed executions: every state, every call, every write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.faults.check import problems
from tests.faults.machine import Entry, Execution, Hook, Invocation, refusal
from tests.faults.world import NAME, WRITES, Calls, Dead, Document, World

# How services fail: code, message, HTTP status.
THROTTLED = ("ThrottlingException", "Rate exceeded", 400)
BROKEN = ("InternalError", "We encountered an internal error. Please try again.", 500)
SILENT = ("RequestTimeout", "The service did not answer in time", 408)
ERRORS = (THROTTLED, BROKEN, SILENT)


@dataclass(frozen=True)
class Row:
    """One fault: where, what, and the end that is expected; ``run`` gives what is wrong after."""

    where: str
    what: str
    expected: str
    run: Callable[[], list[str]]


@dataclass
class Point:
    """A moment of an undisturbed execution: the ``index``-th since ``entry`` was entered."""

    state: str
    what: str
    when: str
    index: int
    entry: Entry
    world: World
    invocation: Invocation | None

    @property
    def call(self) -> str:
        """The service and its method, empty where it is none of a function's calls."""
        return self.what.rpartition(" ")[2] if self.invocation else ""

    @property
    def changes(self) -> bool:
        """Whether the world is another one after it."""
        return self.call in WRITES or self.what == "CreateTrainingJob"


@dataclass
class Undisturbed:
    """An execution without a fault, and every moment of it."""

    name: str
    execution: Execution
    points: list[Point] = field(default_factory=list)

    @property
    def end(self) -> tuple[str, str]:
        """How it ended."""
        return end_of(self.execution)

    def where(self, point: Point) -> str:
        """The moment in words."""
        return f"{self.name}, {point.state}, {point.when} {point.what}"

    def again(self, entry: Entry, **more: Any) -> Execution:
        """Another run from a state on, in a copy of the world as it was then; not yet begun."""
        one, given = self.execution, {"waiting": self.execution.waiting, **more}
        return Execution(one.machine, one.name, one.given, entry.world.copy(), **given)


def undisturbed(name: str, execution: Execution) -> Undisturbed:
    """Run it, and keep each of its moments."""
    kept, counted = Undisturbed(name, execution), [0, 0]

    def hook(running: Execution, what: str, when: str) -> None:
        if counted[0] != len(running.entries):
            counted[:] = [len(running.entries), 0]
        point = Point(running.state, what, when, counted[1], running.entries[-1],
                      running.world.copy(), running.invocation)  # fmt: skip
        counted[1] += 1
        kept.points.append(point)

    execution.hook, execution.kept = hook, True
    execution.run()
    output = execution.output or {}
    assert not [why for key, why in output.items() if key.endswith("_failed") and why], output
    return kept


def at(index: int, act: Callable[[Execution], None]) -> Hook:
    """A hook that acts at a moment of a resumed run, once."""
    seen = 0

    def hook(running: Execution, what: str, when: str) -> None:
        nonlocal seen
        seen += 1
        if seen == index + 1:
            running.hook = None
            act(running)

    return hook


def end_of(execution: Execution) -> tuple[str, str]:
    """How it ended, and what the flag then names."""
    entries = execution.world.services.ledger.raw.entries(NAME, "flag#")
    flag = json.loads(entries[-1]["to"]) if entries else {}
    return execution.status, f"{flag.get('candidate')} {flag.get('state')}"


# A step is stopped from outside, or its function dies.


def killed(of: Undisturbed) -> Iterator[Row]:
    """At every moment: the execution is stopped, its function is gone, the event cleans up."""
    for point in of.points:
        if point.changes or not point.invocation:
            yield Row(of.where(point), "stopped, the function dies", "cleaned up by the event",
                      partial(_killed, of, point))  # fmt: skip


def _killed(of: Undisturbed, point: Point) -> list[str]:
    world = point.world.copy()
    clean_up(world, world.end(of.execution.arn, "ABORTED", of.execution.given), of)
    return problems(world)


def outlived(of: Undisturbed) -> Iterator[Row]:
    """At every write: the execution is stopped and cleaned up after, the function goes on."""
    for point in of.points:
        if point.changes and point.invocation:
            yield Row(of.where(point), "stopped and cleaned up, the function goes on",
                      "nothing it wrote afterwards stays behind",
                      partial(_outlived, of, point))  # fmt: skip


def _outlived(of: Undisturbed, point: Point) -> list[str]:
    invocation, number = point.invocation, int(point.what.split()[1])
    assert invocation is not None
    world, done = invocation.world.copy(), []

    def hook(_name: str, seen: int, when: str) -> None:
        if (seen, when) == (number, point.when) and not done:
            done.append(True)
            clean_up(world, world.end(of.execution.arn, "ABORTED", of.execution.given), of)

    with suppress(Exception):  # nobody reads the answer any more
        world.step(invocation.step, invocation.event, Calls(hook))
    return problems(world)


def lost(of: Undisturbed) -> Iterator[Row]:
    """At every state: stopped, and the event that cleans up never comes."""
    for point in of.points:
        if point.index == 0 or point.what == "CreateTrainingJob":
            yield Row(of.where(point), "stopped, the event of it is lost",
                      "taken over by the next trial, cleaned up by the sweep",
                      partial(_lost, of, point))  # fmt: skip


def _lost(of: Undisturbed, point: Point) -> list[str]:
    world = point.world.copy()
    world.end(of.execution.arn, "ABORTED", of.execution.given)
    return problems(world)


def broken_clean_up(of: Undisturbed, point: Point) -> Iterator[Row]:
    """At every call of the clean-up after a stop at ``point``: it dies there, again and again."""
    world = point.world.copy()
    calls = Calls()
    detail = world.end(of.execution.arn, "ABORTED", of.execution.given)
    world.step(CLEAN_UP[of.execution.machine], {"detail": detail}, calls)
    for number, name in enumerate(calls.seen):
        yield Row(f"{of.where(point)}, clean-up, before {number} {name}", "it fails each time",
                  "made up for by the next trial and the sweep",
                  partial(_broken, of, point, number))  # fmt: skip


def _broken(of: Undisturbed, point: Point, number: int) -> list[str]:
    world = point.world.copy()
    detail = world.end(of.execution.arn, "ABORTED", of.execution.given)

    def hook(_name: str, seen: int, when: str) -> None:
        if (seen, when) == (number, "before"):
            raise refusal(*BROKEN[:2], "AnyCall", BROKEN[2])

    for _ in range(3):  # Lambda tries an event three times
        with suppress(Exception):  # goes to the dead letters
            world.step(CLEAN_UP[of.execution.machine], {"detail": detail}, Calls(hook))
    return problems(world)


# A service fails.


def failing(of: Undisturbed) -> Iterator[Row]:
    """At every call of a function: throttled, an internal error, no answer, in turn."""
    for number, point in enumerate(one for one in of.points if one.invocation):
        if point.when == "before":
            error = ERRORS[number // 2 % len(ERRORS)]
            act = partial(_raise, error)
            yield Row(of.where(point), f"{error[0]}", "caught: aborted, or gone on without it",
                      partial(acted, of, point, act))  # fmt: skip


def failing_twice(of: Undisturbed) -> Iterator[Row]:
    """At every function's first call: an error or its death, and the state's clean-up dies too."""
    first = [one for one in of.points if one.invocation and one.what.split()[1] == "0"]
    for number, point in enumerate(one for one in first if one.when == "before"):
        act = (partial(_raise, ERRORS[number // 2 % len(ERRORS)]), _die)[number % 2]
        yield Row(of.where(point), "it fails, and the clean-up in the machine too",
                  "cleaned up by the event", partial(_failing_twice, of, point, act))  # fmt: skip


def _failing_twice(of: Undisturbed, point: Point, act: Callable[[Execution], None]) -> list[str]:
    def again(running: Execution, what: str, _when: str) -> None:
        if what.startswith("abort_trial "):
            act(running)

    def fails(running: Execution) -> None:
        running.hook = again
        act(running)

    return acted(of, point, fails)


def dying(of: Undisturbed) -> Iterator[Row]:
    """At every write of a function: it is killed there, and the state machine learns of it."""
    for point in of.points:
        if point.invocation and point.changes:
            yield Row(of.where(point), "the function is killed", "caught: aborted, or gone on",
                      partial(acted, of, point, _die))  # fmt: skip


def _raise(error: tuple[str, str, int], _execution: Execution) -> None:
    raise refusal(*error[:2], "AnyCall", error[2])


def _die(_execution: Execution) -> None:
    raise Dead


def acted(of: Undisturbed, point: Point, act: Callable[[Execution], None]) -> list[str]:
    """What is wrong in the end where ``act`` is called at this moment."""
    return ended(of, of.again(point.entry, hook=at(point.index, act)).run(point.entry))


def ended(of: Undisturbed, execution: Execution) -> list[str]:
    """What is wrong once the execution has ended by itself."""
    if execution.status != "SUCCEEDED":
        clean_up(execution.world, execution.detail, of)
    return problems(execution.world)


def repeated(of: Undisturbed) -> Iterator[Row]:
    """At every function: its answer is lost, so it is called again; the end is the same."""
    for point in of.points:
        if point.index == 1 and point.invocation:
            yield Row(f"{of.name}, {point.state}", "its answer is lost, so it runs twice",
                      "as without the fault", partial(_repeated, of, point))  # fmt: skip


def _repeated(of: Undisturbed, point: Point) -> list[str]:
    execution = of.again(point.entry)

    def lose(api: str, request: Document) -> Exception | None:
        if api == "lambda.invoke":
            execution.refuse = None
            execution.call("lambda.invoke", request)
            return refusal("ServiceException", "internal error", "Invoke", 500)
        return None

    execution.refuse = lose
    execution.run(point.entry)
    return [*unless_same(of, execution), *ended(of, execution)]


def unless_same(of: Undisturbed, execution: Execution, same: bool = True) -> Iterator[str]:
    """Where it was to end as without the fault, and did not."""
    if same and end_of(execution) != of.end:
        yield f"it ended {end_of(execution)} ({execution.cause}), not {of.end}"


CLEAN_UP = {"evaluate": "abort_trial", "train": "record_run"}


def clean_up(world: World, detail: Document, of: Undisturbed) -> None:
    world.step(CLEAN_UP[of.execution.machine], {"detail": detail})
