"""``judge --jsonl``: one decision per line, as it goes, in constant memory."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from typing import Any, TextIO

from compilegate.cli.common.error_handling import BAD_INPUT
from compilegate.cli.judge.documents import TOO_DEEP, invalid, judged, lines_of
from compilegate.domain import naming

PROGRESS_SECONDS = 0.5


def stream(file: str, stage: str) -> int:
    """Answer every line; the exit code is that of bad input if a line was not JSON, else 0."""
    out, eager, progress = sys.stdout, not _is_file(sys.stdout), Progress(sys.stderr)
    code = 0
    with lines_of(file) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            decision, readable = _decided(line, number)
            code = code if readable else BAD_INPUT
            flag = naming.flag_parameter(stage, decision.workload)
            out.write(json.dumps(decision.to_dict(flag), separators=(",", ":")) + "\n")
            if eager:  # whoever reads along gets each decision when it is made
                out.flush()
            progress.count()
    progress.end()
    out.flush()
    return code


def _decided(line: str, number: int) -> tuple[Any, bool]:
    try:
        document = json.loads(line)
    except ValueError as error:
        return invalid(None, f"line {number} is not JSON: {error}"), False
    except RecursionError:
        return invalid(None, f"line {number}: {TOO_DEEP}"), False
    return judged(document), True


class Progress:
    """Counts on a terminal that shows nothing else; silent anywhere else."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._shown = to.isatty() and not sys.stdout.isatty()
        self._started = self._last = time.monotonic()
        self._count = 0

    def count(self) -> None:
        """One more document."""
        self._count += 1
        if self._shown and time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._show("\r")

    def end(self) -> None:
        """The last figure stays."""
        if self._shown:
            self._show("\r", "\n")

    def _show(self, before: str, after: str = "") -> None:
        self._last = time.monotonic()
        rate = self._count / max(self._last - self._started, 1e-9)
        self._to.write(f"{before}{self._count:,} decided, {rate:,.0f} per second {after}")
        self._to.flush()


def _is_file(out: TextIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(out.fileno()).st_mode)
    except (OSError, ValueError):  # a stream in memory
        return False
