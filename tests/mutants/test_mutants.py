"""Mutations, where they are put, which tests try them; a sample tries the tests."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.mutants import beside
from tests.mutants.__main__ import LISTED
from tests.mutants.beside import PACKAGES, ROOT, files_beside, modules
from tests.mutants.in_place import Mutated, caches, live_functions, swapped
from tests.mutants.mutations import mutants_of
from tests.mutants.trial import ALIVE, KILLED, Swaps, in_a_fork, outcome

MOST_LISTED = 116  # may only shrink
# Of a sample of a few modules: the weakest have three of four killed, and each lends twenty.
LEAST = 0.5
SECONDS, FEWEST = "45", 20


def after(source: str) -> list[str]:
    return [mutant.after for mutant in mutants_of("one.py", dedent(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("KEPT_S = 60", ["KEPT_S = 61"]),
        ("FINAL = (REVERT, PERMANENT)", ["FINAL = (PERMANENT,)", "FINAL = (REVERT,)"]),
        ("first = math.fsum(seen[-1])", [
            "first = math.fsum(seen[+1])", "first = math.fsum(seen[-2])",
            "first = math.fsum(seen[0])",
        ]),
        ("x = 1 / fall.ours + 1 / fall.theirs", [
            "x = 1 * fall.ours + 1 / fall.theirs", "x = 1 / fall.ours + 1 * fall.theirs",
            "x = 1 / fall.ours + 1 / fall.ours", "x = 1 / fall.ours + 2 / fall.theirs",
            "x = 1 / fall.ours - 1 / fall.theirs", "x = 1 / fall.theirs + 1 / fall.theirs",
            "x = 2 / fall.ours + 1 / fall.theirs",
        ]),
        ("x = compare(ours.runs, theirs.runs)", ["x = compare(ours.runs, ours.runs)"]),
        ("x = compare(1, runs)", ["x = compare(2, runs)"]),
        ("x = (a and b).c", ["x = (a or b).c", "x = (a).c", "x = (b).c"]),
        ("x = all(a for a in b if c)", ["x = all(a for a in b)", "x = any(a for a in b if c)"]),
        ("if expected:\n    x()", ["if not expected:", "pass"]),
        ("x = f(a, key=b)", ["x = f(a, )"]),
        ("x = Fields(a, key=b)", []),
        ("x = 'a' if b == 1 else 'c'", []),
        ("x = f'{a + b}'", ["x = f'{a - b}'"]),
        ("logger.info('n', extra={'n': 1})", []),
        ("jobs.stop(1)", ["jobs.stop(2)", "pass"]),
        ("raise Error(1 + 1, fix='do')", []),
        ("__all__ = ['a', 'b']", []),
        ("x: Annotated[int, 1] = y", []),
        ("@cache(1)\ndef f():\n    return True", ["return False"]),
    ],
)  # fmt: skip
def test_what_is_mutated(source: str, expected: list[str]) -> None:
    assert sorted(expected) == sorted(after(source))


MODULE = """
    import dataclasses

    KEPT_S = 60
    AGAIN = (KEPT_S, 1)

    @dataclasses.dataclass(frozen=True)
    class One:
        size: int = 3
        level = 0.5

        @property
        def twice(self):
            return self.size * 2

    def kept(n=7):
        return KEPT_S + n

    def outer():
        def inner():
            return 10
        return inner()

    def more(than):
        return lambda: than + 1

    ten = more(9)
"""
SHOWN = "kept(), One().size, One().twice, One.level, outer(), ten()"


@pytest.mark.parametrize(
    ("change", "while_swapped", "imported"),
    [
        ("self.size * 2 > self.size * 4", (67, 3, 12, 0.5, 10, 10), (67, 3, 12, 0.5, 10, 10)),
        ("return inner() > return inner() + 10", (67, 3, 6, 0.5, 20, 10), (67, 3, 6, 0.5, 20, 10)),
        ("return 10 > return 11", (67, 3, 6, 0.5, 11, 10), (67, 3, 6, 0.5, 11, 10)),
        ("KEPT_S = 60 > KEPT_S = 61", (68, 3, 6, 0.5, 10, 10), (68, 3, 6, 0.5, 10, 10)),
        ("than + 1 > than + 2", (67, 3, 6, 0.5, 10, 11), (67, 3, 6, 0.5, 10, 11)),
        ("n=7 > n=8", (68, 3, 6, 0.5, 10, 10), (68, 3, 6, 0.5, 10, 10)),
        ("int = 3 > int = 5", (67, 5, 10, 0.5, 10, 10), (67, 5, 10, 0.5, 10, 10)),
        ("level = 0.5 > level = 0.75", (67, 3, 6, 0.75, 10, 10), (67, 3, 6, 0.75, 10, 10)),
    ],
)
def test_a_mutant_takes_the_place_of_its_module(
    tmp_path, monkeypatch, change, while_swapped, imported
) -> None:
    source, path = dedent(MODULE), tmp_path / "compilegate_toy.py"
    path.write_text(source)
    mutated = source.replace(*change.split(" > "))
    assert mutated != source
    monkeypatch.syspath_prepend(str(tmp_path))

    def in_place() -> object:
        importlib.import_module("compilegate_toy")
        exec("from compilegate_toy import *", holder := {"__name__": "tests_toy"})
        with swapped(str(path), source, mutated, live_functions(str(path))) as done:
            shown = [done.name, *eval(SHOWN, holder)]
        return [shown, eval(SHOWN, holder)]

    def at_import() -> object:
        Mutated("compilegate_toy", str(path), mutated).install()
        exec("from compilegate_toy import *", holder := {})
        return [True, *eval(SHOWN, holder)]

    done = "WHOLE" if change.startswith(("self", "return", "than")) else "IN_PART"
    as_before = [67, 3, 6, 0.5, 10, 10]
    assert in_a_fork(in_place) == ([[done, *while_swapped], as_before], 0)
    assert in_a_fork(at_import) == ([True, *imported], 0)


def test_what_a_process_says_of_a_mutant() -> None:
    assert in_a_fork(lambda: 5) == (5, 0)
    assert outcome(*in_a_fork(lambda: ALIVE)) == ALIVE
    assert outcome(*in_a_fork(lambda: sys.exit(7))) == KILLED
    assert outcome(*in_a_fork(lambda: os.kill(os.getpid(), signal.SIGKILL))) == KILLED


def test_a_module_that_cannot_be_imported_is_noticed_beside_files_that_do_without_it() -> None:
    """In a process of its own: what has been imported stays."""
    code = """
from tests.mutants.mutations import Mutant
from tests.mutants.trial import try_imported
lines = range(1, 2)
broken = Mutant("compilegate/domain/escaping.py", "", "", "", lines, None, "raise ImportError")
tests = ["tests/domain/test_escaping.py::t", "tests/domain/test_student_t.py::t"]
print(try_imported(broken, tests, 1.0))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert str(KILLED) == ran.stdout.strip()


def test_few_mutants_or_few_seconds_of_tests_share_a_process(monkeypatch) -> None:
    one = mutants_of("one.py", "x = 1 + 1")[0]
    swaps = Swaps.__new__(Swaps)
    for seconds, sizes in ((0.1, [20, 20, 5]), (4.0, [3] * 15), (16.0, [1] * 45)):
        monkeypatch.setattr(swaps, "_needs", lambda mutants, each=seconds: each * len(mutants))
        assert sizes == [len(batch) for batch in swaps.batches([one] * 45)]


def test_functions_that_remember_earlier_calls_are_all_there() -> None:
    def names() -> list[str]:
        gc.unfreeze()
        return [one.__name__ for one in caches() if one.__module__ == beside.__name__]

    assert in_a_fork(names) == (["_tests_of", "_steps", "_imports", "_file"], 0)


def test_tests_beside_a_module_are_the_files_of_its_part_that_import_it() -> None:
    files = files_beside("compilegate/flags/backoff.py")
    assert "tests/flags/test_backoff.py" in files
    assert all(name.startswith("tests/flags/") for name in files)
    savings = files_beside("compilegate/domain/production/savings.py")
    assert "tests/domain/production/test_promotions_savings.py" in savings  # through summaries
    assert "tests/domain/test_money.py" not in savings
    # The domain's own tests come to it through others alone.
    rounds = files_beside("compilegate/domain/trial/judge_round.py")
    assert "tests/usecases/test_rounds.py" in rounds
    for package in PACKAGES:
        paths = list(modules([package]))
        assert paths, package
        assert [] == [path for path in paths if not files_beside(path)]


def test_survivors_have_reasons() -> None:
    listed = json.loads(LISTED.read_text())
    assert all(one.keys() == {"scope", "before", "after", "why"} for one in listed)
    assert all(one["why"].strip() for one in listed)
    keys = [(one["scope"], one["before"], one["after"]) for one in listed]
    assert len(keys) == len(set(keys)) <= MOST_LISTED


@pytest.mark.slow
def test_a_sample_of_mutants_is_killed(tmp_path) -> None:
    """Another with each commit, the same for everyone who looks at one that failed."""
    seed = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    document = tmp_path / "mutants.json"
    ended = subprocess.run(
        [sys.executable, "-m", "tests.mutants", "--quiet", "--seed", seed or "none",
         "--seconds", SECONDS, "--json", str(document)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    answer = json.loads(document.read_text())
    assert answer["unreached"] == [], "modules to which no test comes in process"
    packages = answer["packages"].values()
    tried = sum(row["mutants"] - row["listed"] for row in packages)
    if tried < FEWEST:
        pytest.skip(
            f"this machine is busy: {tried} mutants in {SECONDS} s, too few to say anything"
        )
    assert sum(row["killed"] for row in packages) >= LEAST * tried, ended.stdout
