"""Stand-ins: a clock, and what only a GPU machine has; the keys of the evidence contract."""

import threading
from datetime import timedelta
from types import SimpleNamespace

from compilegate_runtime.compilers import NoCompiler
from compilegate_runtime.device import Processor
from compilegate_runtime.ranks import Ranks
from compilegate_runtime.recorder import Recorder
from compilegate_runtime.saving import AgreedSaves, SaveSchedule

SUMMARY_KEYS = {
    "schema", "job", "arm", "replicate", "seed", "compiler", "metrics", "outcomes", "loss_curve",
    "peak_memory_gib", "devices", "fingerprint", "initial_loss", "initial_weights_sha256",
    "final_weights_sha256", "final_start_sha256", "finished",
}  # fmt: skip
STEP_KEYS = {"step", "seconds", "samples", "tokens", "loss", "data_wait_seconds"}
COMPILER_KEYS = {
    "requested", "applied", "proof", "compile_seconds", "graphs", "recompiles", "graph_breaks",
}  # fmt: skip


class Queue:
    """A GPU that works through its queue when the test says so; time is the test's."""

    def __init__(self):
        self.now, self.done, self.queued = 0.0, 0, []
        self.waits = 0

    def add(self, action):
        self.queued.append(action)
        return len(self.queued)

    def run(self, seconds, count=None):
        """Take so long for the next ``count`` actions, or for all there are."""
        last = len(self.queued) if count is None else self.done + count
        for action in self.queued[self.done : last]:
            action()
        self.now += seconds
        self.done = last


class Event:
    def __init__(self, queue):
        self.queue, self.place, self.at = queue, None, None

    def record(self):
        self.at = None
        self.place = self.queue.add(self._pass)

    def _pass(self):
        self.at = self.queue.now

    def query(self):
        return self.at is not None

    def elapsed_time(self, later):
        return (later.at - self.at) * 1000


class Tensor:
    """A number that the queue computes; reading it before is an error, as waiting would be."""

    is_cuda = True

    def __init__(self, queue, value):
        self.queue, self.value = queue, value

    def detach(self):
        return self

    def reshape(self, _shape):
        return self

    def __float__(self):
        raise AssertionError("a step waited for the GPU")


class PinnedCell:
    def __init__(self):
        self.value = None

    def copy_(self, tensor, non_blocking):
        assert non_blocking
        tensor.queue.add(lambda: setattr(self, "value", tensor.value))

    def __float__(self):
        return self.value


def torch_with(queue):
    """As much of torch as timing a GPU needs."""
    return SimpleNamespace(
        cuda=SimpleNamespace(Event=lambda enable_timing: Event(queue)),
        float64="float64",
        empty=lambda count, dtype, pin_memory: [PinnedCell() for _ in range(count)],
    )


class Store:
    """What the processes of a job share, as torch.distributed's stores do it."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.values[key] = value.encode()
            self.changed.notify_all()

    def get(self, key):
        self.wait([key], timedelta(seconds=20))
        return self.values[key]

    def check(self, keys):
        return all(key in self.values for key in keys)

    def wait(self, keys, within):
        with self.changed:
            if not self.changed.wait_for(lambda: self.check(keys), within.total_seconds()):
                raise RuntimeError("wait timeout")

    def compare_set(self, key, expected, desired):
        with self.changed:
            if self.values.get(key, b"") == expected.encode():
                self.values[key] = desired.encode()
            return self.values[key]


class Library:
    """NVML's functions; ``code`` is what each returns."""

    def __init__(self, busy=50, used=2 * 2**30, code=0):
        self.busy, self.used, self.code, self.calls = busy, used, code, []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "nvmlDeviceGetUtilizationRates":
                arguments[1]._obj.gpu = self.busy
            if name == "nvmlDeviceGetMemoryInfo":
                arguments[1]._obj.used = self.used
            return self.code

        return call


class Clock:
    """Time that the test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def recorder_in(folder, steps=None, **more):
    """A recorder of a run on a processor without a compiler; ``steps`` is None where unknown."""
    kept = {"compiler": NoCompiler(), "device": Processor(), **more}
    return Recorder(folder, {"arm": "a"}, steps=steps, **kept)


def saves_of(clock, minutes=5.0):
    """The saves of a single process."""
    return AgreedSaves(SaveSchedule(minutes, clock), Ranks(0, 1), clock)


def take_step(recorder):
    """A step of two samples with a loss of 1."""
    recorder.begin_step()
    recorder.end_step(1.0, samples=2)
