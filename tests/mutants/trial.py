"""Runs tests against mutants, in processes that fork from one where all is ready.

One process imports pytest and what the tests need of others (`zygote`); from it one forks that
collects the tests and never runs any; from that one, for a few mutants, another that swaps the code
of one after the other and runs the tests that came to the mutated lines, the quickest first, until
one fails. What lives there and is in more than functions is tried again where nothing of it is
imported yet.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import coverage
import pytest

from tests.mutants.beside import ROOT, module_name
from tests.mutants.in_place import Done, Mutated, caches, live_functions, swapped
from tests.mutants.mutations import Mutant

# Of what fails, the first example is enough.
OPTIONS = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile", "unshrunk"]
# A mutant that takes so much longer than its tests goes in a circle: seconds of processor time.
TIMES_LONGER, LONGER = 4, 10
# And one that takes so many seconds by the clock waits for what never comes.
LONGEST_WAIT = 60
# Mutants in one process, and for how many seconds of tests: what one that does not end costs.
TOGETHER, LONG_TOGETHER = 20, 15.0
# So many tests that noticed a mistake are tried first on the next one.
RECENT = 6
# Tests are left out from here on, in seconds of all before.
ENOUGH = 8.0
KILLED, ALIVE, UNKNOWN = 0, 1, 2


@dataclass(frozen=True)
class Came:
    """Where tests came to, by path and line, and how long each took in seconds.

    Not ``whole``: the time was up before the last test.
    """

    tests: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]
    whole: bool = True

    def of(self, mutant: Mutant, beside: Iterable[str]) -> list[str]:
        """Tests that came to its lines, the quickest first; outside of functions all."""
        files, lines = set(beside), self.tests.get(mutant.path, {})
        inside = {test for line in mutant.lines for test in lines.get(line, ())}
        near = {test for line in mutant.function or () for test in lines.get(line, ())}
        tests = (inside or near) if mutant.function else self.seconds
        found = [test for test in tests if test.partition("::")[0] in files]
        return self._quickest(found)

    def needs(self, tests: Iterable[str]) -> float:
        return sum(self.seconds.get(test, 0.0) for test in tests)

    def _quickest(self, found: list[str]) -> list[str]:
        found.sort(key=lambda test: (self.seconds.get(test, 0.0), test))
        total = 0.0
        for number, test in enumerate(found):
            total += self.seconds.get(test, 0.0)
            if total > ENOUGH:
                return found[: number + 1]
        return found


def in_a_fork(work: Callable[[], object], *, seconds: float | None = None) -> tuple[object, int]:
    """What ``work`` answers in a process of its own, and how that ended, 0 for well."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        ended = 0
        try:
            answer = work()
        except BaseException:  # noqa: BLE001 - nothing of the parent goes on here
            answer, ended = traceback.format_exc(), 3
        with os.fdopen(write, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(ended)
    os.close(write)
    with os.fdopen(read) as pipe:
        if seconds is not None and not select.select([pipe], [], [], LONGEST_WAIT)[0]:
            os.kill(child, signal.SIGKILL)
        text = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return (json.loads(text) if text else None), ended


def silent() -> None:
    """Nothing of pytest on the terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


class Tests:
    """A plugin that, instead of running the collected tests, lends them to ``work``."""

    def __init__(self, work: Callable[[Tests], object]) -> None:
        self.work, self.answer = work, None
        self.items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        self.answer = self.work(self)
        return True

    def run(
        self, tests: Sequence[str], *, before: Callable[[str], bool] | None = None
    ) -> str | None:
        """The first that fails; with ``before`` all are run, up to where that says no."""
        items = [self.items[name] for name in tests if name in self.items]
        for item, following in zip(items, [*items[1:], None], strict=True):
            if before and not before(item.nodeid):
                break
            failed = self.session.testsfailed
            # The next one finds everything torn down, since this may be the last one.
            item.config.hook.pytest_runtest_protocol(
                item=item, nextitem=following if before else None
            )
            if self.session.testsfailed > failed and not before:
                return item.nodeid
        return None


def collected(files: Sequence[str], work: Callable[[Tests], object]) -> object:
    """What ``work`` answers with the collected tests of some files."""
    plugin = Tests(work)
    os.chdir(ROOT)
    status = pytest.main([*OPTIONS, *files], plugins=[plugin])
    if not plugin.items:
        raise RuntimeError(f"no tests collected, pytest answers {status}")
    return plugin.answer


def measured(tests: Tests, paths: Sequence[str], until: float) -> object:
    """Where each test that begins in time comes to, and how long it takes, without those that fail
    by themselves.
    """
    recorded = coverage.Coverage(
        data_file=None, include=[str(ROOT / path) for path in paths], config_file=False
    )
    seconds: dict[str, float] = {}
    failed: list[str] = []
    last: list[tuple[str, float, int]] = []

    def close() -> None:
        if last:
            name, since, before = last.pop()
            seconds[name] = time.process_time() - since
            if tests.session.testsfailed > before:
                failed.append(name)

    def begin(name: str) -> bool:
        close()
        if time.monotonic() > until:
            return False
        recorded.switch_context(name)
        last.append((name, time.process_time(), tests.session.testsfailed))
        return True

    recorded.start()
    tests.run(list(tests.items), before=begin)
    close()
    recorded.stop()
    data = recorded.get_data()
    lines = {
        path: {
            str(line): sorted({name for name in names if name} - set(failed))
            for line, names in data.contexts_by_lineno(str(ROOT / path)).items()
        }
        for path in paths
    }
    kept = {name: spent for name, spent in seconds.items() if name not in failed}
    return {"lines": lines, "seconds": kept, "whole": len(seconds) == len(tests.items)}


def came(answer: object) -> Came:
    assert isinstance(answer, dict), "the tests could not be measured"
    lines = {
        path: {int(line): names for line, names in by_line.items()}
        for path, by_line in answer["lines"].items()
    }
    return Came(lines, answer["seconds"], answer["whole"])


class Swaps:
    """Tries mutants in processes that have imported everything, with their code swapped in."""

    def __init__(self, tests: Tests, where: Came, beside: Mapping[str, Sequence[str]]) -> None:
        self.tests, self.where, self.beside = tests, where, beside
        self.sources = {path: (ROOT / path).read_text() for path in beside}
        self.live = {path: live_functions(str(ROOT / path)) for path in beside}
        self.caches = caches()
        self.killers: deque[str] = deque(maxlen=RECENT)

    def chosen(self, mutant: Mutant) -> list[str]:
        """Its tests; first those that have noticed the mistakes before it."""
        tests = self.where.of(mutant, self.beside[mutant.path])
        return sorted(tests, key=lambda test: test not in self.killers)

    def batches(self, mutants: Iterable[Mutant]) -> Iterator[list[Mutant]]:
        """Those that are tried in one process."""
        batch: list[Mutant] = []
        seconds = 0.0
        for mutant in mutants:
            needs = self._needs([mutant])
            if batch and (len(batch) == TOGETHER or seconds + needs > LONG_TOGETHER):
                yield batch
                batch, seconds = [], 0.0
            batch.append(mutant)
            seconds += needs
        yield batch

    def outcomes(self, mutants: Sequence[Mutant]) -> list[int]:
        """In one process, one after the other; each in its own where that does not end well."""
        limit = TIMES_LONGER * self._needs(mutants) + LONGER
        answer, ended = in_a_fork(lambda: self._one_by_one(mutants), seconds=limit)
        if ended == 0 and isinstance(answer, list):
            for _, killer in answer:
                self._remember(killer)
            return [number for number, _ in answer]
        if len(mutants) > 1:
            return [number for mutant in mutants for number in self.outcomes([mutant])]
        return [KILLED]

    def _one_by_one(self, mutants: Sequence[Mutant]) -> list[tuple[int, str | None]]:
        """The outcome of each and the test that failed; RuntimeError where that still does."""
        answers = []
        for mutant in mutants:
            path, tests, killer = str(ROOT / mutant.path), self.chosen(mutant), None
            code = (path, self.sources[mutant.path], mutant.source, self.live[mutant.path])
            with swapped(*code) as done:
                self._forget()
                if done is not Done.NOTHING:
                    killer = self.tests.run(tests)
            self._forget()
            self._remember(killer)
            number = ALIVE if done is Done.WHOLE else UNKNOWN
            answers.append((KILLED if killer else number, killer))
        if len(mutants) > 1 and self.tests.run([killer for _, killer in answers if killer]):
            raise RuntimeError("a mutant has left more than its code")
        return answers

    def _needs(self, mutants: Iterable[Mutant]) -> float:
        return sum(self.where.needs(self.chosen(one)) for one in mutants)

    def _remember(self, killer: str | None) -> None:
        if killer and killer not in self.killers:
            self.killers.append(killer)

    def _forget(self) -> None:
        for one in self.caches:
            one.cache_clear()


def try_swapped(
    mutants: Sequence[Mutant],
    beside: Mapping[str, Sequence[str]],
    report: Callable[[int, int], None],
    *,
    until: float,
) -> tuple[Came, list[int | None]]:
    """Where the tests come to, and how it went with each mutant's code swapped in.

    None was not tried: nothing is begun after ``until``, and where tests come to is looked for half
    of the time, in which they may not have come to it.
    """
    half = (time.monotonic() + until) / 2

    def work(tests: Tests) -> object:
        answer, _ = in_a_fork(lambda: measured(tests, list(beside), half))
        where = came(answer)
        gc.unfreeze()
        swaps = Swaps(tests, where, beside)
        gc.freeze()
        outcomes: list[int | None] = []
        for batch in swaps.batches(mutants):
            tried = swaps.outcomes(batch) if time.monotonic() < until else [None] * len(batch)
            for mutant, number in zip(batch, tried, strict=True):
                is_known = where.whole or swaps.chosen(mutant)
                outcomes.append(number if is_known else None)
                if outcomes[-1] is not None:
                    report(len(outcomes) - 1, outcomes[-1])
        return {"came": answer, "outcomes": outcomes}

    def whole() -> object:
        silent()
        return collected(list(dict.fromkeys(name for one in beside.values() for name in one)), work)

    answer, ended = in_a_fork(whole)
    assert isinstance(answer, dict), f"the mutants could not be tried: {ended}, {answer}"
    return came(answer["came"]), answer["outcomes"]


def outcome(answer: object, ended: int) -> int:
    """What a process said of a mutant; one that ended badly was killed by it."""
    return answer if ended == 0 and isinstance(answer, int) else KILLED


def try_imported(mutant: Mutant, chosen: Sequence[str], seconds: float) -> int:
    """Tries a mutant where nothing has imported its module yet; 0 where it is killed."""
    if not chosen:
        return ALIVE

    def run() -> int:
        silent()
        Mutated(module_name(mutant.path), str(ROOT / mutant.path), mutant.source).install()
        files = list(dict.fromkeys(test.partition("::")[0] for test in chosen))
        # A file that cannot be imported any more is a failure, whatever the others say.
        answer = collected(files, lambda tests: tests.session.testsfailed or tests.run(chosen))
        return KILLED if answer else ALIVE

    return outcome(*in_a_fork(run, seconds=TIMES_LONGER * (seconds + LONGER)))
