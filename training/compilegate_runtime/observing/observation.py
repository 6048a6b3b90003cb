"""What has been seen of a script, in one JSON file that is replaced as a whole."""

import json
import os
import time
from pathlib import Path

EVERY_SECONDS = 1.0
MOST_SHAPES = 64  # of calls, after which a shape that is new is not kept
MOST_LINES = 1000
LONGEST_LINE = 400


class Observation:
    """The facts by their name; ``steps`` has one entry for each optimizer step.

    It is what ``Steps`` has to call instead of a recorder.
    """

    def __init__(self, path, device, compiler, clock=time.perf_counter):
        self._path, self._pid = Path(path).absolute(), os.getpid()
        self._device, self._compiler, self._clock = device, compiler, clock
        self.facts = {"schema": 1, "ended": None}
        self.steps, self.shapes, self.lines = [], [], []
        self.metrics = {}  # what the script's framework reports
        self.calls = 0
        # As of a recorder.
        self.resumed, self.initial_loss, self.first_loss_is_initial = [], None, True
        self.initial_weights = None
        self._begun = self._waited = self._written = clock()
        self._compilations = 0

    @property
    def steps_done(self):
        """Optimizer steps so far."""
        return len(self.steps)

    def begin_step(self):
        """Start the clock of a step."""
        self._begun = self._waited = self._clock()

    def got_batch(self):
        """Everything in the step until now was waiting for data."""
        self._waited = self._clock()

    def end_step(self, loss, samples, tokens=None, learning_rate=None, **_):
        """Stop the clock of a step when the device is done."""
        self._device.synchronize()
        now, compiled = self._clock(), self._compiler.compilations()
        self.steps.append(
            {
                "seconds": now - self._begun,
                "waited": self._waited - self._begun,
                "compiled": compiled != self._compilations,
                "samples": samples,
                "tokens": None if tokens is None else int(tokens),
                "loss": None if loss is None else float(loss),
                "learning_rate": learning_rate,
            }
        )
        self._compilations = compiled
        if len(self.steps) == 1 or now - self._written >= EVERY_SECONDS:
            self.write()

    def called(self, model, shapes):
        """A model, by its number, is called for training with tensors of these shapes."""
        self.calls += 1
        if not self.steps and self._clock() - self._written >= EVERY_SECONDS:
            self.write()
        if [model, shapes] not in self.shapes and len(self.shapes) < MOST_SHAPES:
            self.shapes.append([model, shapes])

    def printed(self, line):
        """The script printed a line; of very many the first and the last stay."""
        if any(mark.isdigit() for mark in line):
            self.lines.append([self.steps_done, line[-LONGEST_LINE:]])
            if len(self.lines) > 2 * MOST_LINES:
                del self.lines[MOST_LINES // 2 : -MOST_LINES // 2]

    def write(self):
        """Replace the file; a process that the script has started leaves it alone."""
        if os.getpid() != self._pid:
            return
        self._written = self._clock()
        document = {
            **self.facts,
            "steps": self.steps,
            "shapes": self.shapes,
            "calls": self.calls,
            "lines": self.lines,
            "metrics": self.metrics,
            "initial_weights": self.initial_weights,
            "compiler": self._compiler.evidence(),
            "peak_memory_gib": self._device.peak_memory_gib(),
        }
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(document, default=str))
        fresh.replace(self._path)
