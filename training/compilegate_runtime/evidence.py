"""The evidence files of one run: ``steps.jsonl`` and ``summary.json``."""

import json
import math
import os
from pathlib import Path

CURVE_POINTS = 200


class EvidenceFiles:
    """Writes a run's evidence so that a killed process leaves every finished step behind."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._steps = os.open(
            str(self.folder / "steps.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644
        )

    def append_step(self, record):
        """Hand one line to the operating system.

        One unbuffered write: no line is ever half written by a signal that arrives meanwhile.
        """
        os.write(self._steps, json.dumps(record).encode() + b"\n")

    def write_summary(self, summary):
        """Replace the summary as a whole."""
        temporary = self.folder / "summary.json.new"
        temporary.write_text(json.dumps(summary, indent=1) + "\n")
        temporary.replace(self.folder / "summary.json")

    def close(self):
        """Let go of the steps file."""
        os.close(self._steps)


class LossCurve:
    """At most CURVE_POINTS points of a loss; each is the mean over the steps since the last."""

    def __init__(self, steps):
        self.points = []
        self._last = steps
        self._every = max(1, math.ceil(steps / CURVE_POINTS))
        self._sum = 0.0
        self._count = 0

    def add(self, step, loss):
        """Count one step's loss; the first step is a point of its own."""
        self._sum += loss
        self._count += 1
        if step in (1, self._last) or step % self._every == 0:
            self.points.append([step, self._sum / self._count])
            self._sum, self._count = 0.0, 0
