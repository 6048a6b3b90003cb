"""Lets a script come to its end after a few steps or seconds, and notes what it is fed."""

import time

from compilegate_runtime.launching.models import Models
from compilegate_runtime.launching.shortened import Shortened
from compilegate_runtime.launching.steps import Enough

FEWEST = 5  # steps, however long they take
# Of slow steps that many within these seconds tell as much as a person waits for. Steps are slow if
# the rest of them, each as long as the last one, would take so many seconds.
SOON, SOON_SECONDS, SLOW_SECONDS = 10, 45.0, 20.0
REPORTS_WITHIN_SECONDS = 5.0  # once its data has ended
MOST_NAMED = 8  # tensors of a call


class Few(Shortened):
    """A run of ``few`` steps, or as many as begin within ``seconds`` of the first one."""

    def __init__(self, few, seconds, observation, reported):
        super().__init__(few, observation, reported)
        self._seconds, self._first, self._ended = seconds, None, None
        self._counted, self._latest, self._pace = 0, 0.0, 0.0
        self.loaders, self.steps_until_end = {}, few

    @property
    def seconds_over(self):
        """Seconds since the training data has ended, 0 before."""
        return 0.0 if self._ended is None else time.monotonic() - self._ended

    def batches(self, source, steps, loader):
        """The batches of a loader, as many as a short run has."""
        self.loaders.setdefault(id(loader), loader)
        return super().batches(source, steps, loader)

    def stepped(self, steps):
        """A step is over; a script without a loader goes on a little, to report."""
        over = steps.training_loader is None and self._done()
        if over and self.seconds_over >= REPORTS_WITHIN_SECONDS:
            raise Enough

    def _done(self):
        done, now = self._recorder.steps_done, time.monotonic()
        if done and self._first is None:
            self._first = now
        if done != self._counted:
            self._pace = (now - self._latest) / (done - self._counted)
            self._counted, self._latest = done, now
        spent = 0.0 if self._first is None else now - self._first
        late = spent > self._seconds and done >= FEWEST
        slow = (self._few - done) * self._pace > SLOW_SECONDS
        soon = spent > SOON_SECONDS and done >= SOON and slow
        over = done >= self._few or late or soon
        if over and self._ended is None:
            self._ended, self.steps_until_end = now, done
        return over


class SeenModels(Models):
    """Tells ``called`` the shapes of what a model is called with for training.

    Where ``is_stuck()``, the run has been seen long enough.
    """

    called = is_stuck = None

    def _noting(self, module, call):
        noting, number = super()._noting(module, call), len(self.models)

        def seeing(*args, **kwargs):
            if module.training and self._torch.is_grad_enabled():
                if self.is_stuck():
                    raise Enough
                self.called(number, shapes_of(args, kwargs))
            return noting(*args, **kwargs)

        return seeing


def shapes_of(args, kwargs):
    """[name, shape, type] of the tensors of a call, by position or by name."""
    shapes = []

    def look(name, value, depth=0):
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            kind = str(value.dtype).rpartition(".")[2]
            shapes.append([name, [int(size) for size in value.shape], kind])
        elif depth < 3 and isinstance(value, (list, tuple)):
            for index, part in enumerate(value[:MOST_NAMED]):
                look(f"{name}[{index}]", part, depth + 1)
        elif depth < 3 and hasattr(value, "items"):
            for key, part in list(value.items())[:MOST_NAMED]:
                look(str(key), part, depth + 1)

    for index, value in enumerate(args):
        look(f"input{index or ''}", value)
    for name, value in kwargs.items():
        look(str(name), value)
    return shapes[:MOST_NAMED]


def loader_facts(loader):
    """Batches and samples of an epoch, and the loader's settings; None of what it cannot say."""
    sampler = getattr(loader, "batch_sampler", None)
    return {
        "batches": _length(loader),
        "samples": _length(getattr(loader, "dataset", None)),
        "batch_size": _number(getattr(loader, "batch_size", None) or _of(sampler, "batch_size")),
        "drop_last": bool(getattr(loader, "drop_last", False) or _of(sampler, "drop_last")),
        "workers": getattr(loader, "num_workers", None),
    }


def _of(owner, name):
    return getattr(owner, name, None)


def _number(value):
    return value if isinstance(value, int) else None


def _length(value):
    try:
        return len(value)
    except (TypeError, NotImplementedError, ValueError):
        return None
