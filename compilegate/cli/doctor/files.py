"""Which files ``compilegate doctor`` examines: scripts, folders, a workload's entry point."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import read_workload
from compilegate.domain.compilers import COMPILERS
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate_doctor import MOST_BYTES

WORKLOADS = (".yaml", ".yml")
SKIPPED = ("__pycache__", "node_modules", "site-packages")
# By compiler, whose rules it is examined by: a variant's are its base's.
EXAMINED_AS = {name: one.examined_as or (name,) for name, one in COMPILERS.items()}
ENVIRONMENT = "pyvenv.cfg"  # every virtual environment has one at its root


@dataclass(frozen=True)
class Target:
    """A file to examine; without ``compilers`` its imports say which it is for.

    ``hyperparameters`` are those it is started with; ``in_folder`` says that a folder was named.
    """

    path: Path
    compilers: tuple[str, ...] = ()
    hyperparameters: Mapping[str, Any] | None = field(default=None, hash=False)
    in_folder: bool = False

    @property
    def examined_as(self) -> tuple[str, ...]:
        """The compilers whose rules apply; none where the imports say so."""
        return examined_as(self.compilers)

    @property
    def name(self) -> str:
        """The path from the working folder, with forward slashes."""
        shown = os.fsencode(Path(os.path.relpath(self.path)).as_posix())
        return shown.decode(errors="replace")  # names on disk need not be text

    def read(self) -> bytes:
        """The file's bytes. Raises InvalidInputError where it cannot be read or is no script."""
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for without end
                raise self._no_script("is not a plain file")
            if status.st_size > MOST_BYTES:
                raise self._no_script(f"has {status.st_size:,} bytes, which is no script")
            return self.path.read_bytes()
        except OSError as error:
            raise InvalidInputError(
                f"cannot be read: {error.strerror}", file=self.name, fix="make it readable"
            ) from error

    def _no_script(self, problem: str) -> InvalidInputError:
        return InvalidInputError(problem, file=self.name, fix="name the file that trains")


def examined_as(compilers: Iterable[str]) -> tuple[str, ...]:
    """The compilers whose rules these are examined by, each once."""
    return tuple(dict.fromkeys(rules for name in compilers for rules in EXAMINED_AS[name]))


def find_targets(paths: list[Path], compilers: tuple[str, ...]) -> list[Target]:
    """The files that the paths select, each once; raises InvalidInputError for other paths."""
    targets: dict[tuple[Path, tuple[str, ...]], Target] = {}
    for path in paths:
        for target in _targets(path, compilers):
            targets.setdefault((target.path.absolute(), target.compilers), target)
    return list(targets.values())


def _targets(path: Path, compilers: tuple[str, ...]) -> Iterator[Target]:
    if path.is_dir():
        yield from (Target(file, compilers, in_folder=True) for file in _python_files(path))
    elif not path.exists():
        raise InvalidInputError("does not exist", file=str(path), fix="name a Python file, "
                                "a folder or a workload file")  # fmt: skip
    elif path.suffix in WORKLOADS:
        yield from _of_workload(path, compilers)
    elif path.suffix == ".ipynb":
        raise InvalidInputError(
            "is a notebook", file=str(path),
            fix=f"convert it first: jupyter nbconvert --to script {path.name}",
        )  # fmt: skip
    elif path.suffix != ".py":
        raise InvalidInputError("is not a Python file", file=str(path), fix="name a .py file, "
                                "a folder or a workload file")  # fmt: skip
    else:
        yield Target(path, compilers)


def _of_workload(path: Path, compilers: tuple[str, ...]) -> Iterator[Target]:
    """The entry point, once per set of hyperparameters that a candidate is started with."""
    file = read_workload(path, needs_inputs=False)
    training = file.workload.training
    starts: list[tuple[str, dict[str, Any], set[str]]] = []
    for candidate in file.workload.candidates:
        hyperparameters = {**training.hyperparameters, **candidate.hyperparameters}
        entry = _script(candidate.entry_point or training.entry_point, hyperparameters)
        same = next((item for item in starts if item[:2] == (entry, hyperparameters)), None)
        if same is None:
            same = (entry, hyperparameters, set())
            starts.append(same)
        same[2].add(candidate.compiler or "none")
    if not starts:
        own = dict(training.hyperparameters)
        starts.append((_script(training.entry_point, own), own, set()))
    for entry, hyperparameters, named in starts:
        chosen = compilers or tuple(name for name in COMPILERS if name in named)
        yield Target(file.source_dir / entry, chosen, hyperparameters)


def _script(entry_point: str, hyperparameters: Mapping[str, Any]) -> str:
    """The script that trains: under the launcher the one that it runs."""
    return str(hyperparameters["script"]) if entry_point == LAUNCHER else entry_point


def _python_files(folder: Path) -> Iterator[Path]:
    """Python files below a folder, without hidden folders, environments and links out of it."""
    root = folder.resolve()
    for place, folders, files in os.walk(folder, followlinks=False):
        here = Path(place)
        folders[:] = sorted(
            name for name in folders
            if not name.startswith(".") and name not in SKIPPED
            and not (here / name / ENVIRONMENT).is_file()
        )  # fmt: skip
        for name in sorted(files):
            path = here / name
            if path.suffix == ".py" and not name.startswith(".") and _inside(path, root):
                yield path


def _inside(path: Path, root: Path) -> bool:
    if not path.is_symlink():
        return True
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to nowhere, or to itself
        return False
