"""What judge reads, and its decision on each document."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge as decide
from compilegate.domain.reasons import Reason

STANDARD = "-"


def read_json(file: str) -> object:
    """One JSON document, from standard input where the file is ``-``."""
    if file == STANDARD:
        text = standard_input().read()
    else:
        path = Path(file)
        if path.is_dir() or not path.exists():
            fix = "name an evidence document (JSON)"
            raise InvalidInputError("is not a file", file=file, fix=fix)
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        fix = "many documents, one per line, need --jsonl"
        raise InvalidInputError(f"is not JSON: {error}", file=file, fix=fix) from error


@contextmanager
def lines_of(file: str) -> Iterator[TextIO]:
    """The lines of a file or of standard input; broken UTF-8 spoils its own line only."""
    if file == STANDARD:
        yield standard_input()
        return
    path = Path(file)
    if path.is_dir() or not path.exists():  # a pipe or a device will do
        raise InvalidInputError("is not a file", file=file, fix="name a file of JSON lines, or -")
    with path.open(encoding="utf-8", errors="replace") as opened:
        yield opened


def standard_input() -> TextIO:
    """Standard input as UTF-8, whatever the locale says."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdin


TOO_DEEP = "the document is nested too deeply"


def judged(document: object) -> Decision:
    """The decision; a document that breaks the contract is decided as invalid."""
    if not isinstance(document, Mapping):
        return invalid(document, "the document must be a JSON object")
    try:
        return decide(read_evidence(document))
    except InvalidEvidenceError as error:
        return invalid(document, str(error))
    except RecursionError:
        return invalid(document, TOO_DEEP)


def invalid(document: object, why: str) -> Decision:
    """The decision on a document that nothing can be read from."""
    workload = document.get("workload") if isinstance(document, Mapping) else None
    named = isinstance(workload, str) and workload and workload.isprintable()
    return Decision(
        workload=str(workload) if named else "unknown",
        decision_id="invalid",
        judge_version=JUDGE_VERSION,
        stage="speed",
        verdict=Verdict.INVALID,
        candidate=None,
        reasons=(Reason("evidence_invalid", why),),
    )
