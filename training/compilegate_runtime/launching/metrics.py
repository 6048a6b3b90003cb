"""A script's own metrics: what its Trainer says, what it saves, what it prints."""

import json
import math
import re
from pathlib import Path

RESULTS = ("all_results.json", "eval_results.json")
TAIL = 4096  # characters of a line that is not finished


class Printed:
    """A text stream that passes everything on and remembers the last match of each pattern."""

    def __init__(self, stream, patterns, found):
        self._stream, self._found, self._rest = stream, found, ""
        self._patterns = {name: re.compile(pattern) for name, pattern in patterns.items()}

    def write(self, text):
        """Pass ``text`` on; a line is looked at when it is complete."""
        written = self._stream.write(text)
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()[-TAIL:]
        for line in lines:
            self._look(line)
        return written

    def _look(self, line):
        for name, pattern in self._patterns.items():
            for match in pattern.finditer(line):
                self._found[name] = _number(match[1])

    def finish(self):
        """Look at a last line without an end."""
        self._look(self._rest)
        self._rest = ""

    def __getattr__(self, name):  # noqa: D105 — the stream's own
        return getattr(self._stream, name)


def _number(text):
    """What a match says; NaN, which no run may end with, where it is no number."""
    try:
        return float(text.rstrip("., "))  # a sentence's end is no part of it
    except (AttributeError, ValueError):
        return math.nan


def saved(folder):
    """Numbers in the results that the Trainer's examples save in their output folder."""
    found = {}
    for name in RESULTS:
        path = Path(folder) / name if folder else None
        if path is not None and path.is_file():
            found.update(numbers(json.loads(path.read_text())))
    return found


def numbers(values):
    """Those of ``values`` that are numbers, NaN among them."""
    return {
        key: float(value)
        for key, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def telling(values):
    """Metrics worth recording: not the Trainer's own times and counts, which say nothing new."""
    own = re.compile(r"(_runtime|_per_second|_samples|_flos|^total_flos|^epoch)$")
    return {key: value for key, value in values.items() if not own.search(key)}
