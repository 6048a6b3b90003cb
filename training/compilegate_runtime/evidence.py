"""The evidence files of one run: ``steps.jsonl`` and ``summary.json``."""

import json
import math
import os
from pathlib import Path

CURVE_POINTS = 200
EVALUATIONS, EVALUATED_METRICS = 200, 40  # of each metric, and of how many
# Every step has its line until the file is this large, some 350,000 steps; from there on a line
# stands for ten steps, then for a hundred, so that no run leaves more than 100 MB.
FULL_DETAIL_BYTES = 48 * 2**20
COARSER_EVERY_BYTES = 16 * 2**20
COPIED_AT_ONCE = 2**20
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
MEANS = ("seconds", "samples", "tokens", "loss", "data_wait_seconds")


class EvidenceFiles:
    """Writes a run's evidence so that a killed process leaves what it has recorded."""

    def __init__(self, folder):
        self.folder = Path(folder).absolute()  # wherever the script may go
        self.folder.mkdir(parents=True, exist_ok=True)
        self._steps = os.open(
            str(self.folder / "steps.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644
        )
        self._size = 0  # of the lines that are complete
        self._group = []

    def append_steps(self, records):
        """Hand lines to the operating system, which keeps them if this process dies.

        The line of a group that is not complete is written over when more steps join it.
        """
        complete, size = [], self._size
        for record in records:
            lines = self._lines(record, size)
            complete += lines
            size += sum(map(len, lines))
        begun = [] if not self._group else [_line(_together(self._group))]
        _write(self._steps, b"".join(complete + begun), self._size)
        self._size = size
        if begun:
            os.ftruncate(self._steps, size + len(begun[0]))

    def _lines(self, record, size):
        """Lines that are complete with this record."""
        steps_per_line = _group_size(size)
        if steps_per_line == 1:
            return [_line(record)]
        if "compile_seconds" in record:  # a step of its own kind
            finished, self._group = self._group, []
            return [_line(_together(finished))] * bool(finished) + [_line(record)]
        self._group.append(record)
        if len(self._group) < steps_per_line:
            return []
        finished, self._group = self._group, []
        return [_line(_together(finished))]

    def state(self):
        """What another process needs to continue these files."""
        return {"size": self._size, "group": self._group}

    def resume(self, state, steps_file):
        """Begin with the lines that an earlier process had left in ``steps_file`` at ``state``."""
        size, done = state["size"], 0  # the rest belongs to steps that are repeated
        with Path(steps_file).open("rb") as file:
            while piece := file.read(min(size - done, COPIED_AT_ONCE)):
                _write(self._steps, piece, done)
                done += len(piece)
        self._size, self._group = size, list(state["group"])

    def write_summary(self, summary):
        """Replace the summary as a whole."""
        temporary = self.folder / "summary.json.new"
        temporary.write_text(json.dumps(summary, indent=1) + "\n")
        temporary.replace(self.folder / "summary.json")

    def close(self):
        """Close the steps file."""
        os.close(self._steps)


def _write(descriptor, body, offset):
    """All of it; on a disk that becomes full a write may end early without an error."""
    while body:
        written = os.pwrite(descriptor, body, offset)
        body, offset = body[written:], offset + written


def _line(record):
    return _ENCODE(record).encode() + b"\n"


def _group_size(size):
    """Steps that one line stands for in a file of ``size`` bytes."""
    if size < FULL_DETAIL_BYTES:
        return 1
    return 10 ** (1 + (size - FULL_DETAIL_BYTES) // COARSER_EVERY_BYTES)


def _together(records):
    """One line for several steps: means, the last step's number, and ``steps``, their count."""
    line = dict(records[-1], steps=len(records))
    for key in MEANS:
        values = [record[key] for record in records if record[key] is not None]
        line[key] = rounded(sum(values) / len(values), 7) if values else None
    return line


def rounded(value, digits):
    """``value`` to so many significant digits, None where there is no finite number."""
    return float(f"{value:.{digits}g}") if value is not None and math.isfinite(value) else None


class LossCurve:
    """At most 2 * CURVE_POINTS points of a loss; each is the mean over the steps since the last.

    In a run of unknown length every second point is dropped whenever there are too many.
    """

    def __init__(self, steps):
        self.points = []
        self._last = steps
        self._every = max(1, math.ceil((steps or 1) / CURVE_POINTS))
        self._sum = 0.0
        self._count = 0

    def add(self, step, loss):
        """Count one step's loss; the first step is a point of its own."""
        self._sum += loss
        self._count += 1
        if step in (1, self._last) or step % self._every == 0:
            self.points.append([step, self._sum / self._count])
            self._sum, self._count = 0.0, 0
            if len(self.points) > 2 * CURVE_POINTS:
                self._thin()

    def state(self):
        """What another process needs to continue this curve."""
        return {
            "points": self.points, "every": self._every, "sum": self._sum, "count": self._count,
        }  # fmt: skip

    def resume(self, state):
        """Continue the curve of an earlier process."""
        self.points, self._every = list(state["points"]), state["every"]
        self._sum, self._count = state["sum"], state["count"]

    def _thin(self):
        self._every *= 2
        self.points = self.points[:1] + self.points[1:][1::2]


class Evaluations:
    """At most EVALUATIONS evaluations of each metric, as ``[step, value, seconds of the job]``.

    Of a run with more every second one is dropped, as if it had evaluated half as often.
    """

    def __init__(self):
        self.of = {}
        self._every, self._seen = {}, {}

    def add(self, name, step, value, seconds):
        """Count an evaluation; one that is no number, or of no known time, shows nothing."""
        if value is None or seconds is None or not math.isfinite(value):
            return
        if name not in self.of and len(self.of) >= EVALUATED_METRICS:
            return
        points, every = self.of.setdefault(name, []), self._every.setdefault(name, 1)
        seen = self._seen[name] = self._seen.get(name, 0) + 1
        if seen % every:
            return
        points.append([step, rounded(value, 10), seconds])
        if len(points) > EVALUATIONS:
            self._every[name], self.of[name] = 2 * every, points[1::2]

    def state(self):
        """What another process needs to continue."""
        return {"of": self.of, "every": self._every, "seen": self._seen}

    def resume(self, state):
        """Continue those of an earlier process."""
        self.of, self._every, self._seen = state["of"], state["every"], state["seen"]


class Reported(dict):
    """Metrics as a script reports them: the last value of each; ``then`` hears of every one."""

    def __init__(self, then):
        super().__init__()
        self._then = then

    def __setitem__(self, name, value):
        """Keep the value, and say when it came."""
        super().__setitem__(name, value)
        self._then(name, value)

    def update(self, values):
        """Each on its own, as frameworks report several at once."""
        for name, value in values.items():
            self[name] = value
