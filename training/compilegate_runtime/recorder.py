"""Measures a training run while it runs and writes what it measured.

The rules of timing are all here: a step lasts from asking for its batch until the device has
done all of its work; evaluation, summaries and progress lines lie between steps.
"""

import math
import time

from compilegate_runtime import environment
from compilegate_runtime.errors import DivergedError, TrainingError
from compilegate_runtime.evidence import EvidenceFiles, LossCurve

PROGRESS_EVERY = 10  # steps
SUMMARY_EVERY = 100  # steps


class Recorder:
    """One run's clock and evidence; ``run`` holds what identifies the run."""

    def __init__(self, folder, run, *, steps, compiler, device, clock=time.perf_counter):
        self.steps_planned = steps
        self.steps_done = 0
        self.metrics = {}
        self.fingerprint = {}
        self._run = dict(run)
        self._compiler = compiler
        self._device = device
        self._clock = clock
        self._files = EvidenceFiles(folder)
        self._curve = LossCurve(steps)
        self.initial_loss = None  # of step 1, unless the script measures it before
        self._finished = False
        self._reason = None
        self._compiled_before = 0.0
        self._window = [0.0, 0]  # seconds and samples since the last progress line
        self._begin = self._wait = 0.0

    def use(self, compiler, device):
        """Take the compiler and device that were found after the run's evidence was opened."""
        self._compiler, self._device = compiler, device

    def steps(self, batches):
        """Yield a batch per step; the step's clock starts when its batch is asked for."""
        source = iter(batches)
        while self.steps_done < self.steps_planned:
            self.begin_step()
            try:
                batch = next(source)
            except StopIteration:
                return
            self._wait = self._clock() - self._begin
            yield batch

    def begin_step(self):
        """Start the clock of a step."""
        self._wait = 0.0
        self._begin = self._clock()

    def end_step(self, loss, samples, tokens=None):
        """Stop the clock when the device is done and record the step.

        ``samples`` and non-padding ``tokens`` count the whole job. Raises DivergedError on a
        loss that is not finite, NotAppliedError when the first step did not compile.
        """
        loss = float(loss)
        self._device.synchronize()
        seconds = self._clock() - self._begin
        self.steps_done += 1
        step = self.steps_done
        finite = math.isfinite(loss)
        record = {
            "step": step,
            "seconds": round(seconds, 7),
            "samples": samples,
            "tokens": tokens,
            "loss": loss if finite else None,
            "data_wait_seconds": round(self._wait, 7),
        }
        compiled = self._compiler.compile_seconds()
        if compiled > self._compiled_before:
            record["compile_seconds"] = round(compiled - self._compiled_before, 4)
            self._compiled_before = compiled
        self._files.append_step(record)
        if not finite:
            raise DivergedError(f"the loss became {loss} at step {step}")
        self._after_step(step, seconds, samples, loss)

    def _after_step(self, step, seconds, samples, loss):
        self._curve.add(step, loss)
        self._window[0] += seconds
        self._window[1] += samples
        if step == 1:
            self.initial_loss = loss if self.initial_loss is None else self.initial_loss
            self._compiler.verify()
        if step % PROGRESS_EVERY == 0 or step == self.steps_planned:
            self._progress(step, loss)
        if step == 1 or step % SUMMARY_EVERY == 0:
            self.write_summary()

    def _progress(self, step, loss):
        seconds, samples = self._window
        steps = (step - 1) % PROGRESS_EVERY + 1
        print(
            f"compilegate step={step} steps={self.steps_planned} seconds={seconds / steps:.4f} "
            f"samples_per_second={samples / max(seconds, 1e-9):.1f} loss={loss:.4f}",
            flush=True,
        )
        self._window = [0.0, 0]

    def metric(self, name, value):
        """Record a final metric. Raises DivergedError when it is not a finite number."""
        value = float(value)
        self.metrics[name] = value if math.isfinite(value) else None
        if self.metrics[name] is None:
            raise DivergedError(f"{name} is {value}")
        print(f"compilegate {name}={value:.6f}", flush=True)
        self.write_summary()

    def finish(self):
        """Declare the run complete. Raises when it did not do what was asked of it."""
        if self.steps_done < self.steps_planned:
            raise TrainingError(
                f"the data ended after {self.steps_done} of {self.steps_planned} steps"
            )
        self._compiler.verify()
        self._finished = True
        self.write_summary()

    def fail(self, reason):
        """Record why the run ended early; what was measured until then stays."""
        self._finished, self._reason = False, reason
        self.write_summary()

    def write_summary(self):
        """Bring ``summary.json`` up to date."""
        age = environment.process_age_seconds()
        peak = self._device.peak_memory_gib()
        self._files.write_summary(
            {
                "schema": 1,
                **self._run,
                "compiler": self._compiler.evidence(),
                "metrics": self.metrics,
                "loss_curve": self._curve.points,
                "peak_memory_gib": round(peak, 3),
                "devices": environment.world_size(),
                "fingerprint": self.fingerprint,
                "initial_loss": self.initial_loss,
                "finished": self._finished,
                "reason": self._reason,
                "steps": self.steps_done,
                "wall_seconds": None if age is None else round(age, 3),
                "node": environment.node(),
            }
        )

    def close(self):
        """Let go of the evidence files."""
        self._files.close()
