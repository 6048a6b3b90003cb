"""Archived judges: each decides as it did when its version was current.

An archive, ``VERSION.zip`` beside this file, is what its judge loaded of ``compilegate``, with a
``__main__`` that answers a request (``python -m tools.archive_judge`` makes it). It runs in a
process of its own with the standard library alone, so that nothing of the present release takes
part in an old decision.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilegate.domain.errors import InvalidEvidenceError

FOLDER = Path(__file__).parent
# Decisions take milliseconds; a process that hangs is not waited for.
MOST_SECONDS = 120


def is_archived(version: str) -> bool:
    """Whether there is an archive of that judge."""
    return version in {place.stem for place in FOLDER.glob("*.zip")}


def decide(version: str, evidence: object, flag: str) -> Mapping[str, Any]:
    """The decision document of an archived judge; ``flag`` is the parameter's full name.

    Raises InvalidEvidenceError where that judge refused to read the evidence.
    """
    ended = subprocess.run(  # noqa: S603 - its own Python and its own file
        (sys.executable, "-I", "-S", "-X", "utf8", str(FOLDER / f"{version}.zip")),
        input=json.dumps({"evidence": evidence, "flag": flag}), capture_output=True, text=True,
        encoding="utf-8", timeout=MOST_SECONDS, check=True,
    )  # fmt: skip
    answer = json.loads(ended.stdout)
    if "refused" in answer:
        raise InvalidEvidenceError(answer["refused"])
    decision: dict[str, Any] = answer["decision"]
    return decision
