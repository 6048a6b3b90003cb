"""How long a step takes: by the processor's clock, or by marks in a GPU's queue.

A GPU works behind the code that tells it what to do. Waiting for it in every step would slow
down what is measured; so marks are put into its queue, and read once it has passed them. The
numbers that a step ends with (loss, gradient norm, tokens) travel the same way.
"""

import collections

SPARE_MARKS = 64  # as many steps as a GPU is ever behind


def _number(value):
    """A number that later work on a tensor cannot change."""
    return value.item() if hasattr(value, "item") else value


def detached(value):
    """A tensor as it is now, unread; other numbers as they are."""
    return value.detach() if hasattr(value, "detach") else value


class HostMark:
    """The end of a step on a processor, which has done its work when it says so."""

    __slots__ = ("_seconds", "_values", "_wait")

    def __init__(self, seconds, wait, values):
        self._seconds, self._wait, self._values = seconds, wait, values

    def passed(self):
        """Whether the device has done the step's work."""
        return True

    def read(self):
        """Seconds of the step, those of them spent waiting for data, and the step's numbers."""
        values = self._values
        return self._seconds, self._wait, [None if v is None else float(v) for v in values]


class HostTimer:
    """Times steps by the processor's clock; ``kept`` is what a mark keeps of a step's number.

    By default its value, which waits for the device. PyTorch/XLA's numbers are ``detached``:
    reading a loss in every step would cut its graph in two. There each step ends with
    ``mark_step``, which waits for the step before, so the clock's steps are as long as the
    device's.
    """

    def __init__(self, clock, kept=_number):
        self._clock, self._kept = clock, kept
        self._begin = self._wait = 0.0

    def begin(self):
        """A step begins."""
        self._wait = 0.0
        self._begin = self._clock()

    def got_batch(self):
        """The step's batch is there."""
        self._wait = self._clock() - self._begin

    def end(self, *values):
        """The step is over; return its mark, which keeps ``values`` until they can be read."""
        now = self._clock()
        return HostMark(now - self._begin, self._wait, [self._kept(value) for value in values])

    def release(self, mark):
        """The mark was read."""


class CudaMark:
    """Three events of one step in a GPU's queue, and page-locked memory for its numbers."""

    def __init__(self, torch, count):
        self.begin, self.batch, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        self.waited = False
        self._kept = torch.empty(count, dtype=torch.float64, pin_memory=True)
        self._values = [None] * count

    def keep(self, values):
        """Copy numbers from the GPU when it gets there, without waiting for it."""
        for index, value in enumerate(values):
            on_device = getattr(value, "is_cuda", False)
            if on_device:
                self._kept[index].copy_(value.detach().reshape(()), non_blocking=True)
            self._values[index] = _KEPT if on_device else value

    def passed(self):
        """Whether the GPU has done the step's work."""
        return self.end.query()

    def read(self):
        """Seconds of the step, those in which the GPU waited for data, and its numbers."""
        wait = self.begin.elapsed_time(self.batch) / 1000 if self.waited else 0.0
        numbers = [self._kept[i] if v is _KEPT else v for i, v in enumerate(self._values)]
        values = [None if number is None else float(number) for number in numbers]
        return self.begin.elapsed_time(self.end) / 1000, wait, values


_KEPT = object()


class CudaTimer:
    """Times steps by events in the GPU's current stream; nothing here waits for the GPU."""

    def __init__(self, torch, count=3):
        self._torch, self._count = torch, count
        self._spare = collections.deque(maxlen=SPARE_MARKS)
        self._mark = None

    def begin(self):
        """A step begins."""
        spare = self._spare
        self._mark = spare.popleft() if spare else CudaMark(self._torch, self._count)
        self._mark.waited = False
        self._mark.begin.record()

    def got_batch(self):
        """The step's batch is there; a GPU that was still busy has not waited for it."""
        self._mark.waited = True
        self._mark.batch.record()

    def end(self, *values):
        """The step is over; return its mark, which keeps ``values`` until they can be read."""
        mark, self._mark = self._mark, None
        mark.keep(values)
        mark.end.record()
        return mark

    def release(self, mark):
        """The mark was read and can serve another step."""
        self._spare.append(mark)
