"""Three steps under torch.profiler, behind a segment whose evidence is complete.

Nothing here is measured or can fail a run: the summary is written before the first of these steps.
Where there is no profile, ``absent`` is the code of why.
"""

import contextlib
import json
import os
import time

from compilegate_runtime import ending, kernels, scratch
from compilegate_runtime.equivalence.unseen import Unseen, reason_of

VARIABLE, ASKED = "COMPILEGATE_PROFILE", "1"
STEPS = 3
# Seconds that the steps may be expected to take, and after which profiling ends.
MOST_EXPECTED, MOST_SECONDS = 20.0, 60.0
CODES = {
    "steps_too_long", "time_exceeded", "incomplete", "no_kernels", "trace_too_large",
    "out_of_memory", "failed",
}  # fmt: skip
LARGEST_TRACE = 2**26  # bytes; read, they take some ten times as much memory


class NoProfileError(Exception):
    """Why there is no profile, by its ``code``."""

    def __init__(self, code, detail):
        super().__init__(code)
        self.code, self.detail = code, str(detail)[:300]


def steps_asked_for():
    """How many steps follow the last measured one."""
    return STEPS if os.environ.get(VARIABLE) == ASKED else 0


class ProfiledSteps:
    """The steps behind a complete run.

    ``keep`` gets the document once. Of several processes, of which this one is at ``rank``, the
    first one profiles; all take every step, for they compute together.
    """

    def __init__(self, device, keep, *, rank, processes, step_seconds, further=None):
        """``further`` is how many steps the run has left, None where that is not known."""
        self.left, self._alone = STEPS, processes == 1
        self._device, self._keep, self._began = device, keep, time.perf_counter()
        self._profiler = self._step = None
        self._stack = contextlib.ExitStack()
        with self._ending_on_failure():
            if further is not None and further < STEPS:  # a script would go on behind its last step
                self.left = 0
                raise NoProfileError("incomplete", f"a whole run has {further} further steps")
            if step_seconds * STEPS > MOST_EXPECTED:
                self.left = 0
                raise NoProfileError("steps_too_long", f"{step_seconds:.3g} seconds each")
            self._stack.enter_context(ending.ending_within(MOST_SECONDS))
            if rank == 0:
                self._start()

    def _start(self):
        of = self._device.torch.profiler
        kind = of.ProfilerActivity
        kinds = [kind.CPU, kind.CUDA] if self._device.is_gpu else [kind.CPU]
        profiler = of.profile(activities=kinds)
        profiler.start()
        self._profiler = profiler

    def begin_step(self):
        """A step begins."""
        if self._profiler is not None and self._step is None:
            with self._ending_on_failure():
                self._step = self._device.torch.profiler.record_function(kernels.STEP)
                self._step.__enter__()

    def end_step(self):
        """A step is over; the last one leaves the document."""
        self.left -= 1
        with self._ending_on_failure():
            self._leave_step()
            if self._profiler is not None and not self.left:
                self._device.synchronize()
                profiler, self._profiler = self._profiler, None
                profiler.stop()
                self._say(self._folded(profiler))
        if not self.left:
            self.close()

    def close(self, error=None):
        """No step follows, perhaps for an error; a profile without all steps is none."""
        if not isinstance(error, Unseen):  # which says that the time is over
            error = NoProfileError("incomplete", error or f"{self.left} steps are missing")
        self._end(error)
        self._stack.close()

    def _leave_step(self):
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def _folded(self, profiler):
        with scratch.held("profile") as folder:
            path = folder / "trace.json"
            profiler.export_chrome_trace(str(path))
            if path.stat().st_size > LARGEST_TRACE:
                raise NoProfileError("trace_too_large", f"{path.stat().st_size} bytes")
            events = json.loads(path.read_text())["traceEvents"]
        on_gpu = self._device.is_gpu
        rows, longest = kernels.folded(events, on_gpu)
        if not longest:
            raise NoProfileError("no_kernels", "the trace holds no work of the device")
        device = "cuda" if on_gpu else "cpu"
        return {"device": device, "steps": STEPS, "rows": rows, "kernels": longest}

    @contextlib.contextmanager
    def _ending_on_failure(self):
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the run is complete, whatever this fails of
            self.left = 0 if self._alone else self.left
            self._end(error)

    def _end(self, error):
        reason = error if isinstance(error, NoProfileError) else reason_of(error)
        self._say({"absent": reason.code, "detail": reason.detail})
        with contextlib.suppress(Exception):
            self._leave_step()
            if self._profiler is not None:
                self._profiler.stop()
        self._profiler = None

    def _say(self, document):
        keep, self._keep = self._keep, None
        if keep is not None:
            spent = round(time.perf_counter() - self._began, 3)
            keep({"schema": 1, **document, "spent_seconds": spent})
