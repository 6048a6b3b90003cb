"""What ``judge`` reads: one document, or many, from a file, a pipe or standard input."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from compilegate.domain.errors import InvalidInputError

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
