"""Which test files are beside a module: those of its part of the tests that import it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Where packages lie, and how the modules that help tests begin.
SOURCES = (ROOT, *sorted((ROOT / "distributions").iterdir()))
OF_TESTS = ("tests.", "distributions.")
# So many test files are tried, where there are.
FEW = 3
# Imports nearly every module for its constants, and is none of the few.
CONSTANTS = "tests/domain/test_constants.py"
# Each package with its part of `tests`, and the share of mutants that this is to kill. Left out is
# what runs in an environment of its own, so that no test imports it:
# - the embedded cloud's engine, which imports ministack. Whole executions are its tests, those in
#   distributions/localcloud/tests: of `replay` test_killed_cloud.py, of
#   `executions` and `patches` test_state_language_*.py, of `sagemaker_task`
#   test_state_machine_training.py; of `expressions` tests/asl/test_agreement.py.
# - what exports to trackers: of `mlflow_runs` and `wandb_runs` tests/exports/test_read_back.py, of
#   `command` tests/cli/test_export.py.
PACKAGES = {
    "compilegate/domain/judging": ("tests/domain", 0.95),
    "compilegate/domain/planning": ("tests/domain", 0.9),
    "compilegate/domain/production": ("tests/domain", 0.9),
    "compilegate/domain/trial": ("tests/domain", 0.9),
    "compilegate/domain/fleet": ("tests/domain", 0.9),
    "compilegate/usecases": ("tests/usecases", 0.95),
    "compilegate/flags": ("tests/flags", 0.95),
    "compilegate/adapters": ("tests/adapters", 0.9),
    "compilegate/report": ("tests/report", 0.9),
    "distributions/exports/compilegate_exports/arm_runs.py": ("tests/exports", 0.9),
    "distributions/exports/compilegate_exports/junit.py": ("tests/exports", 0.9),
    "distributions/exports/compilegate_exports/openmetrics.py": ("tests/exports", 0.9),
    "distributions/facts/compilegate_facts/refresh.py": ("tests/adapters", 0.9),
    "distributions/judge/compilegate_judge/comparison.py": ("tests/usecases", 0.9),
    "distributions/judge/compilegate_judge/replay.py": ("tests/usecases", 0.9),
    "distributions/operating/compilegate_operating/drainage.py": ("tests/usecases", 0.9),
    "distributions/operating/compilegate_operating/work.py": ("tests/domain", 0.9),
    "distributions/statement/compilegate_statement/page.py": ("tests/report", 0.9),
    "distributions/statement/compilegate_statement/read.py": ("tests/usecases", 0.95),
    "distributions/statement/compilegate_statement/statement.py": ("tests/usecases", 0.9),
}


def package_of(path: str) -> str:
    return next(package for package in PACKAGES if path.startswith(package))


def module_name(path: str) -> str:
    place = ROOT / path
    source = next(one for one in reversed(SOURCES) if place.is_relative_to(one))
    name = place.relative_to(source).as_posix()
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def files_beside(path: str) -> list[str]:
    """Test files of the part that come to the module by the fewest imports, and those in the folder
    of its package; where few do, those of all parts. The nearest first.
    """
    own, _ = PACKAGES[package_of(path)]
    folder = f"tests/{Path(path).parent.relative_to(*Path(path).parts[:1])}/"
    beside = () if folder == f"{own}/" else folder
    steps = _steps_of(path, [own])
    if len(_nearest(steps) - {CONSTANTS}) < FEW:
        steps |= _steps_of(path, [part for part, _ in PACKAGES.values()])
    near = _nearest(steps)
    files = [name for name in steps if name in near or name.startswith(beside)]
    return sorted(files, key=lambda name: (steps[name], name))


def _steps_of(path: str, parts: list[str]) -> dict[str, int]:
    """Each test file of some parts with how many imports lead from it to the module."""
    target = module_name(path)
    steps = {name: _steps(ROOT / name).get(target) for part in parts for name in _tests_of(part)}
    return {name: number for name, number in steps.items() if number is not None}


def _nearest(steps: dict[str, int]) -> set[str]:
    """A few files at least, and all that are as near as the last of them."""
    far = sorted(number for name, number in steps.items() if name != CONSTANTS)[:FEW]
    return {name for name, number in steps.items() if number <= far[-1]} if far else set()


@cache
def _tests_of(part: str) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in sorted((ROOT / part).rglob("test_*.py"))]


@cache
def _steps(file: Path) -> dict[str, int]:
    """Each module that a file comes to, by how many imports."""
    far: dict[str, int] = {}
    seen, queue = {file}, deque([(file, 0)])
    while queue:
        at, steps = queue.popleft()
        for name in _imports(at):
            far.setdefault(name, steps + 1)
            found = _file(name)
            if found and found not in seen:
                seen.add(found)
                # What helps tests stands for them.
                queue.append((found, steps + (not name.startswith(OF_TESTS))))
    return far


@cache
def _imports(file: Path) -> tuple[str, ...]:
    """Modules that a file names, most of them twice: `from a import b` may mean a.b."""
    names: dict[str, None] = {}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module:
            names[node.module] = None
            names.update(dict.fromkeys(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(name for name in names if name.startswith(("compilegate", *OF_TESTS)))


@cache
def _file(name: str) -> Path | None:
    for source in SOURCES:
        place = source / name.replace(".", "/")
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


def modules(packages: list[str]) -> Iterator[str]:
    """Files of packages or single ones, those without a statement left out."""
    for package in packages:
        place = ROOT / package
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            if len(ast.parse(path.read_text()).body) > 1:
                yield str(path.relative_to(ROOT))
