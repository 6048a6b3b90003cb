"""Faults around the functions: AWS refuses the machine, jobs end badly, clocks, people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from compilegate.domain import ledger_keys
from compilegate.domain.naming import REFUSED
from compilegate.usecases.registration import RegisterOptions, retire
from tests.fakes import MemorySchedules
from tests.faults.check import problems
from tests.faults.machine import Entry, Execution, refusal
from tests.faults.rows import ERRORS, Row, Undisturbed, clean_up, ended, unless_same
from tests.faults.world import JOB_SECONDS, NAME, Calls, Dead, Document, watched

OUT_OF_MEMORY = {"TrainingJobStatus": "Failed", "SecondaryStatus": "Failed",
                 "FailureReason": "AlgorithmError: CUDA out of memory"}  # fmt: skip
STOPPED = {"TrainingJobStatus": "Stopped", "SecondaryStatus": "Stopped"}
ENDS: dict[str, Document] = {
    "is out of memory": OUT_OF_MEMORY,
    "gets no capacity": {**OUT_OF_MEMORY, "FailureReason": "CapacityError: none is available."},
    "is stopped by others": STOPPED,
    "reaches its time limit": {**STOPPED, "SecondaryStatus": "MaxRuntimeExceeded"},
}
APIS = ("s3.get_object", "sns.publish", "sagemaker.create_training_job")
DAY = 24 * 3600


def refused(of: Undisturbed) -> Iterator[Row]:
    """Every call that the machine itself makes: refused once, and each time."""
    for number, call in enumerate(_calls(of)):
        entry, api, _ = call
        error = ERRORS[number % len(ERRORS)]
        where = f"{of.name}, {entry.state}, {api}"
        for once in (True, False):
            expected = "as without the fault" if once else "caught: aborted, or gone on without it"
            yield Row(where, f"{error[0]} {'once' if once else 'each time'}", expected,
                      partial(_refused, of, call, error, once))  # fmt: skip


def _calls(of: Undisturbed) -> list[tuple[Entry, str, int]]:
    """State, API and the call's number in the state."""
    made: list[tuple[Entry, str, int]] = []
    execution = of.again(of.execution.entries[0], kept=True)

    def count(api: str, _request: Document) -> None:
        if api in APIS:
            number = len(execution.entries)
            nth = sum(one is execution.entries[-1] and which == api for one, which, _ in made)
            made.append((execution.entries[number - 1], api, nth))

    execution.refuse = count  # type: ignore[assignment]
    execution.run()
    return made


def _refused(
    of: Undisturbed, call: tuple[Entry, str, int], error: tuple[str, str, int], once: bool
) -> list[str]:
    (entry, api, nth), seen = call, [0]

    def refuse(called: str, _request: Document) -> Exception | None:
        if called != api:
            return None
        seen[0] += 1
        if seen[0] <= nth:
            return None
        if once:
            execution.refuse = None
        return refusal(error[0], error[1], called, error[2])

    execution = of.again(entry, refuse=refuse)
    execution.run(entry)
    return [*unless_same(of, execution, once), *ended(of, execution)]


def unheard(of: Undisturbed) -> Iterator[Row]:
    """Every job is started, and nobody hears of it: the answer is lost, or all has ended."""
    for number, call in enumerate(one for one in _calls(of) if one[1] == APIS[-1]):
        entry, error = call[0], ERRORS[number % len(ERRORS)]
        if of.execution.machine == "evaluate":  # what such a job of production cost is accepted
            yield Row(f"{of.name}, {entry.state}, its job", f"{error[0]}, though it starts",
                      "stopped, and in an account", partial(_unheard, of, call, error))  # fmt: skip
        yield Row(f"{of.name}, {entry.state}, its job", "starts after the clean-up of a stop",
                  "stopped by the sweep", partial(_unheard, of, call, None))  # fmt: skip


def _unheard(
    of: Undisturbed, call: tuple[Entry, str, int], error: tuple[str, str, int] | None
) -> list[str]:
    (entry, api, nth), seen = call, [0]

    def refuse(called: str, request: Document) -> Exception | None:
        if called == api:
            seen[0] += 1
        if called != api or seen[0] != nth + 1:
            return None
        execution.refuse = None
        if error is None:
            execution.stop()
            clean_up(execution.world, execution.detail, of)
        execution.world.create(request)
        return refusal(*(error or ERRORS[0])[:2], called, (error or ERRORS[0])[2])

    execution = of.again(entry, refuse=refuse)
    execution.run(entry)
    left = ended(of, execution) if error else problems(execution.world)
    return [*unless_same(of, execution, error is not None), *left]


def jobs(of: Undisturbed) -> Iterator[Row]:
    """Every job of the execution, ended in every way."""
    started = [point for point in of.points if point.what == "the job's end"]
    for number, point in enumerate(started):
        for words, how in ENDS.items():
            yield Row(f"{of.name}, job {number} of {point.state}", words,
                      "a result of its arm, another round, or the trial fails",
                      partial(_job, of, point.entry, number, how))  # fmt: skip


def _job(of: Undisturbed, entry: Entry, number: int, how: Document) -> list[str]:
    execution = of.again(entry)
    before = number - execution.world.jobs_started
    execution.world.trains = [*[{}] * max(before, 0), how]
    execution.run(entry)
    return ended(of, execution)


def clocks(of: Undisturbed) -> Iterator[Row]:
    """At every state the functions' clock jumps; a job ends before it has begun."""
    for number, entry in enumerate(of.execution.entries):
        seconds = (-DAY, -3600, 3600, 40 * 60)[number % 4]
        yield Row(f"{of.name}, before {entry.state}", f"the clock jumps by {seconds} s",
                  "as without the fault", partial(_clock, of, entry, seconds))  # fmt: skip
    for point in of.points:
        if point.what == "the job's end":
            yield Row(f"{of.name}, {point.state}", "the job ends before it begins",
                      "no promotion that is not deserved",
                      partial(_backwards, of, point.entry))  # fmt: skip


def _clock(of: Undisturbed, entry: Entry, seconds: int) -> list[str]:
    execution = of.again(entry)
    execution.world.passes(seconds)
    execution.run(entry)
    return [*unless_same(of, execution), *ended(of, execution)]


def _backwards(of: Undisturbed, entry: Entry) -> list[str]:
    execution = of.again(entry)
    ends = entry.world.services.clock.seconds - JOB_SECONDS
    moment = next(iter(_times(of)), None)
    execution.world.trains = (
        [{"TrainingEndTime": moment - timedelta(seconds=DAY)}] if moment else []
    )
    assert ends > 0
    execution.run(entry)
    return ended(of, execution)


def _times(of: Undisturbed) -> Iterator[Any]:
    for described in of.execution.world.services.jobs.descriptions.values():
        yield described["TrainingStartTime"]


def copies(of: Undisturbed) -> Iterator[Row]:
    """At every state somebody starts the same trial again, under another name."""
    for entry in of.execution.entries:
        yield Row(f"{of.name}, in {entry.state}", "the same input is started again by hand",
                  "refused", partial(_copy, of, entry))  # fmt: skip


def _copy(of: Undisturbed, entry: Entry) -> list[str]:
    one, world = of.execution, entry.world.copy()
    held = world.services.locks.holder(NAME)
    if held is None and not world.services.ledger.raw.entries(NAME, ledger_keys.TRIAL_ENTRIES):
        return []  # the original has not begun: this one is the trial
    again = Execution(one.machine, "by-hand", one.given, world).run()
    found = [] if REFUSED in (again.output or {}) else [f"it ran: {again.status}"]
    if world.services.locks.holder(NAME) != held:
        found.append("it changed the lock")
    clean_up(world, world.end(one.arn, "ABORTED", one.given), of)
    return [*found, *problems(world)]


def retired(of: Undisturbed) -> Iterator[Row]:
    """While a trial waits for production, the workload is retired; that dies at every call."""
    calls = Calls()
    execution = of.again(_waits(of), waiting=lambda run, _token: _retire(run, calls))
    execution.run(_waits(of))
    yield Row(f"{of.name}, CanaryRuns", "the workload is retired", "the trial goes on at once",
              partial(_retired, of, None))  # fmt: skip
    for number, name in enumerate(calls.seen):
        yield Row(f"{of.name}, CanaryRuns, retiring, before {number} {name}",
                  "the command dies, and is run again", "the trial goes on",
                  partial(_retired, of, number))  # fmt: skip


def _waits(of: Undisturbed) -> Entry:
    return next(entry for entry in of.execution.entries if entry.state == "CanaryRuns")


def _retired(of: Undisturbed, dies_at: int | None) -> list[str]:
    def waiting(run: Execution, _token: str) -> None:
        def hook(_name: str, number: int, when: str) -> None:
            if (number, when) == (dies_at, "before"):
                raise Dead

        with suppress(Dead):
            _retire(run, Calls(hook))
        _retire(run, Calls())

    execution = of.again(_waits(of), waiting=waiting).run(_waits(of))
    return ended(of, execution)


def _retire(run: Execution, calls: Calls) -> None:
    services, _ = watched(run.world, calls)
    options = RegisterOptions(by="human:ana")
    retire(NAME, services=services, schedules=MemorySchedules(), options=options)


def broken_ledger_entry(of: Undisturbed) -> Iterator[Row]:
    """An entry that a later release wrote lies in the ledger."""
    for entry in of.execution.entries[:1]:
        yield Row(f"{of.name}, the ledger", "holds an entry of an unknown kind",
                  "as without the fault", partial(_unknown, of, entry))  # fmt: skip


def _unknown(of: Undisturbed, entry: Entry) -> list[str]:
    execution = of.again(entry)
    new = json.loads('{"kind": "of a later release", "at": 1}')
    execution.world.services.ledger.raw.put_once(NAME, "new#1", new)
    execution.run(entry)
    return [*unless_same(of, execution), *ended(of, execution)]


Kind = Callable[[Undisturbed], Iterator[Row]]
AROUND: tuple[Kind, ...] = (refused, unheard, jobs, clocks, broken_ledger_entry)
