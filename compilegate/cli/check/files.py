"""The workload files that paths name, read and checked one after the other."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.adapters.yaml_file import MOST_BYTES
from compilegate.cli.common.error_handling import error_document
from compilegate.cli.common.own_compiling import notes_on
from compilegate.domain.eligibility import Eligibility, check_eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.notes import Note, note_documents
from compilegate.ports import Settings
from compilegate.usecases.registered import facts_for_workload

SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = ("node_modules", "cdk.out", "__pycache__")
# Top-level keys of every workload file; a file with two of them is taken for one.
_SECTION = re.compile(rb"^(schema|framework|model|training|shapes|schedule|quality)\s*:", re.M)
_ENOUGH = 2


@dataclass(frozen=True)
class Checked:
    """One file's answer: its eligibility, or why there is none.

    ``notes`` are remarks about the job.
    """

    file: str
    answer: Eligibility | InvalidInputError
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        if isinstance(self.answer, InvalidInputError):
            return error_document(self.answer)
        return {**self.answer.to_dict(), **note_documents(self.notes)}


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and those in the folders named that look like workload files, each once.

    Raises InvalidInputError for a folder without any.
    """
    by_resolved: dict[Path, Path] = {}
    for path in paths:
        here = list(_in_folder(path)) if is_folder(path) else [path]
        for file in here:
            by_resolved.setdefault(file.absolute(), file)
        if not here:
            raise InvalidInputError(
                "contains no workload file",
                file=str(path),
                fix=f"name a folder with workload files ({' or '.join(SUFFIXES)})",
            )
    return list(by_resolved.values())


def is_folder(path: Path) -> bool:
    """Whether it is a folder; an unreadable path is reported when it is read."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _in_folder(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS
        )
        for name in sorted(names):
            file = Path(place, name)
            if file.suffix in SUFFIXES and not name.startswith(".") and _looks_like_one(file):
                yield file


def _looks_like_one(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(MOST_BYTES)
    except OSError:
        return True  # reported when it is checked
    return len(set(_SECTION.findall(head))) >= _ENOUGH


def read_files(
    files: Sequence[Path], *, needs_prepared: bool = True
) -> Iterator[tuple[Path, WorkloadFile | InvalidInputError]]:
    """Read each file; an error is yielded like a file.

    Without ``needs_prepared`` data may be missing that a project's own script writes.

    The name of an earlier file is an error: jobs, flag and S3 keys would be the same.
    """
    first: dict[str, Path] = {}
    for file in files:
        try:
            outcome = read_workload(file, needs_prepared=needs_prepared)
        except InvalidInputError as error:
            yield file, error
            continue
        name = outcome.workload.name
        twin = first.setdefault(name, file)
        if twin is file:
            yield file, outcome
            continue
        yield file, InvalidInputError(
            f"is also the name of the workload in {twin}", file=str(file), field="name",
            value=name,
            fix="give each workload its own name, or name the files in commands of their own",
        )  # fmt: skip


def check_files(files: Sequence[Path], settings: Settings) -> Iterator[Checked]:
    """Check each file; an error is yielded like an answer."""
    for file, read in read_files(files, needs_prepared=False):
        if isinstance(read, InvalidInputError):
            yield Checked(str(file), read)
            continue
        facts = facts_for_workload(read.workload, settings)
        eligibility = check_eligibility(read.workload, facts, region=settings.region)
        yield Checked(str(file), eligibility, notes_on(read))
