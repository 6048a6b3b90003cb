"""Evidence documents that ``compilegate judge`` reads: one, or a stream of lines."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from compilegate.cli.common.error_handling import BAD_INPUT
from compilegate.cli.common.output import progress
from compilegate.domain import naming
from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError
from compilegate.domain.judging.evidence import Evidence
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge as decide
from compilegate.domain.reasons import Reason

STANDARD_INPUT = "-"
TOO_DEEP = "the document is nested too deeply"


def read_json(file: str) -> object:
    """One JSON document, from standard input where the file is ``-``."""
    if file == STANDARD_INPUT:
        text = _standard_input().read()
    else:
        path = _existing(file, "name an evidence document (JSON)")
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        fix = "many documents, one per line, need --jsonl"
        raise InvalidInputError(f"is not JSON: {error}", file=file, fix=fix) from error


def _existing(file: str, fix: str) -> Path:
    """The path of a file, a pipe or a device; raises InvalidInputError for anything else."""
    path = Path(file)
    try:
        there = path.exists() and not path.is_dir()
    except OSError:  # a name longer than the file system takes
        there = False
    if not there:
        raise InvalidInputError("is not a file", file=file, fix=fix)
    return path


@contextmanager
def _lines_of(file: str) -> Iterator[TextIO]:
    """The lines of a file or of standard input; broken UTF-8 affects its own line only."""
    if file == STANDARD_INPUT:
        yield _standard_input()
        return
    path = _existing(file, "name a file of JSON lines, or -")
    with path.open(encoding="utf-8", errors="replace") as opened:
        yield opened


def _standard_input() -> TextIO:
    """Standard input as UTF-8, whatever the locale says."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdin


def evidence_of(document: object) -> Evidence | None:
    """The evidence, None where the document breaks the contract."""
    try:
        return read_evidence(document) if isinstance(document, Mapping) else None
    except InvalidEvidenceError:
        return None


def judged(document: object) -> Decision:
    """The decision; a document that breaks the contract is decided as invalid."""
    if not isinstance(document, Mapping):
        return _invalid(document, "the document must be a JSON object")
    try:
        return decide(read_evidence(document))
    except InvalidEvidenceError as error:
        return _invalid(document, str(error))
    except RecursionError:
        return _invalid(document, TOO_DEEP)


def _invalid(document: object, why: str) -> Decision:
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


def stream(file: str, stage: str) -> int:
    """Answer every line; the exit code is that of bad input if a line was not JSON, else 0."""
    out, eager, code = sys.stdout, not _is_file(sys.stdout), 0
    with _lines_of(file) as lines:
        # A terminal that shows the decisions needs no count of them.
        counted = lines if out.isatty() else progress(lines, None, "Judging")
        for number, line in enumerate(counted, start=1):
            if not line.strip():
                continue
            decision, readable = _decided(line, number)
            code = code if readable else BAD_INPUT
            flag = naming.flag_parameter(stage, decision.workload)
            out.write(json.dumps(decision.to_dict(flag), separators=(",", ":")) + "\n")
            if eager:  # a reader of the pipe gets each decision when it is made
                out.flush()
    out.flush()
    return code


def _decided(line: str, number: int) -> tuple[Decision, bool]:
    try:
        document = json.loads(line)
    except ValueError as error:
        return _invalid(None, f"line {number} is not JSON: {error}"), False
    except RecursionError:
        return _invalid(None, f"line {number}: {TOO_DEEP}"), False
    return judged(document), True


def _is_file(out: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(out.fileno()).st_mode)
    except (OSError, ValueError):  # a stream in memory
        return False
