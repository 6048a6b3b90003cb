"""Archived judges: each decides as it did when its version was current.

An archive is what its judge loaded of ``compilegate``, zipped, with a ``__main__`` that answers one
request a line (``tests/judges`` makes them). It runs in a process of its own with the standard
library alone, so that nothing of the present release takes part in an old decision.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from compilegate.domain.errors import EnvironmentNotReadyError, InvalidEvidenceError
from compilegate.domain.problem import ProblemWithFix

FOLDER = Path(__file__).parent
# Decisions take milliseconds; a process that hangs is not waited for.
MOST_SECONDS = 120


@cache
def archives() -> Mapping[str, Mapping[str, str]]:
    """``commit`` and ``sha256`` of each archive, by the judge's version."""
    listed: dict[str, dict[str, str]] = json.loads((FOLDER / "archives.json").read_text("utf-8"))
    return listed


def is_archived(version: str) -> bool:
    """Whether there is an archive of that judge."""
    return version in archives()


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over places and contents, whatever packs them."""
    total = hashlib.sha256()
    for place, content in sorted(files.items()):
        total.update(f"{place}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


@cache
def command(version: str) -> tuple[str, ...]:
    """What runs an archive; raises EnvironmentNotReadyError where its contents are others."""
    place = FOLDER / f"{version}.zip"
    with ZipFile(place) as archive:
        actual = digest({name: archive.read(name) for name in archive.namelist()})
    if actual != archives()[version]["sha256"]:
        raise EnvironmentNotReadyError(
            ProblemWithFix(
                f"{place} is not the archive that archives.json names",
                fix="install Compilegate again",
            )
        )
    return (sys.executable, "-I", "-S", "-X", "utf8", str(place))


def decide(version: str, evidence: object, flag: str) -> Mapping[str, Any]:
    """The decision document of an archived judge; ``flag`` is the parameter's full name.

    Raises InvalidEvidenceError where that judge refused to read the evidence.
    """
    ended = subprocess.run(  # noqa: S603 - its own Python and its own file
        command(version), input=json.dumps({"evidence": evidence, "flag": flag}) + "\n",
        capture_output=True, text=True, encoding="utf-8", timeout=MOST_SECONDS, check=True,
    )  # fmt: skip
    answer = json.loads(ended.stdout)
    if "refused" in answer:
        raise InvalidEvidenceError(answer["refused"])
    decision: dict[str, Any] = answer["decision"]
    return decision
