"""The progress lines of a run, which the job's metric definitions read."""

import sys

EVERY_STEPS = 10
EVERY_SECONDS = 0.5


def write_line(text, stream=None):
    """Print a line at once and in one piece.

    ``print`` writes every word by itself where PYTHONUNBUFFERED is set, as in AWS's images. mpirun
    tags each piece that it reads, and the container toolkit makes a line of it (``watch`` in its
    process.py): no metric definition matches what comes out.
    """
    stream = stream or sys.stdout
    stream.write(text + "\n")
    stream.flush()


class Progress:
    """Prints the progress since the last line; ``silent`` in all processes but the first."""

    def __init__(self, clock, *, silent):
        self._clock, self._silent = clock, silent
        self._begin()

    def _begin(self):
        self._steps, self._seconds, self._samples = 0, 0.0, 0
        self._printed = self._clock()

    def after(self, record, planned):
        """A step was recorded; ``planned`` is how many there will be, None if unknown."""
        self._steps += 1
        self._seconds += record["seconds"]
        self._samples += record["samples"] or 0
        step = record["step"]
        waited = self._clock() - self._printed >= EVERY_SECONDS
        if step == planned or (waited and step % EVERY_STEPS == 0):
            self._line(step, planned, record["loss"])

    def _line(self, step, planned, loss):
        of = f"steps={planned} " if planned else ""
        shown = "nan" if loss is None else f"{loss:.4f}"
        self.say(
            f"compilegate step={step} {of}seconds={self._seconds / self._steps:.4f} "
            f"samples_per_second={self._samples / max(self._seconds, 1e-9):.1f} loss={shown}"
        )
        self._begin()

    def say(self, line):
        """Print a line at once."""
        if not self._silent:
            write_line(line)
