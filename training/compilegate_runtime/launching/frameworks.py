"""What a script's framework reports: metrics, how many steps it plans, its checkpoints."""

import collections
import contextlib
import functools
import importlib
import json
import math
import re
import signal
import threading
from pathlib import Path

RESULTS = ("all_results.json", "eval_results.json")
TAIL = 4096  # characters of a line that are searched
# Of one pattern in one line: a sound one takes microseconds, a bad one may take years.
SEARCH_SECONDS = 1.0
LINES = 1000  # that other threads may print until the main thread prints


class Printed:
    """A text stream that passes all on and keeps each pattern's last match in ``metrics``.

    The main thread searches, because only there a search can be interrupted. The metric of a
    pattern that takes too long is NaN, with which no run may end.
    """

    def __init__(self, stream, patterns, metrics):
        self._stream, self._metrics, self._rest = stream, metrics, ""
        self._patterns = {name: re.compile(pattern) for name, pattern in patterns.items()}
        self._lines = collections.deque(maxlen=LINES)

    def write(self, text):
        """Pass ``text`` on; a line is searched when it is complete."""
        written = self._stream.write(text)
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()[-TAIL:]
        self._lines.extend(lines)
        self._search()
        return written

    def _search(self):
        if threading.current_thread() is not threading.main_thread():
            return
        while self._lines:
            line = self._lines.popleft()[-TAIL:]
            for name, pattern in list(self._patterns.items()):
                try:
                    with _at_most(SEARCH_SECONDS):
                        for match in pattern.finditer(line):
                            self._metrics[name] = _number(match[1])
                except _TooLongError:
                    self._give_up(name)

    def _give_up(self, name):
        del self._patterns[name]
        self._metrics[name] = math.nan
        self._stream.write(
            f"compilegate: metric_patterns {name} took more than {SEARCH_SECONDS:g} s in one line "
            "and is not searched any more: give a pattern without repeats inside of repeats\n"
        )

    def finish(self):
        """Search a last line without an end."""
        self._lines.append(self._rest)
        self._rest = ""
        self._search()

    def __getattr__(self, name):  # noqa: D105 — the stream's own
        return getattr(self._stream, name)


class _TooLongError(Exception):
    pass


@contextlib.contextmanager
def _at_most(seconds):
    """Interrupt the block in time; an alarm that the script has set stays set."""
    if signal.getsignal(signal.SIGALRM) is None:  # a library's own, which could not be put back
        yield
        return

    def interrupt(_number, _frame):
        raise _TooLongError

    handler = signal.signal(signal.SIGALRM, interrupt)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        signal.signal(signal.SIGALRM, handler)


def _number(text):
    """A match as a number; NaN, with which no run may end, where it is none."""
    try:
        return float(text.rstrip("., "))  # without a sentence's end
    except (AttributeError, ValueError):
        return math.nan


def saved(folder):
    """Numbers in the results that the Trainer's examples save in their output folder."""
    metrics = {}
    for name in RESULTS:
        path = Path(folder) / name if folder else None
        if path is not None and path.is_file():
            metrics.update(numbers(json.loads(path.read_text())))
    return metrics


def numbers(values):
    """Those of ``values`` that are numbers, NaN among them."""
    return {
        key: float(value)
        for key, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def without_counts(values):
    """Metrics without the Trainer's own times and counts, which the recorder has."""
    own = re.compile(r"(_runtime|_per_second|_samples|_flos|^total_flos|^epoch)$")
    return {key: value for key, value in values.items() if not own.search(key)}


def listen_to_trainer(metrics, planned, checkpoints=None):
    """Take the metrics of every Trainer made from now on, and how many steps it plans.

    ``checkpoints`` (TrainerCheckpoints) keeps those that it saves, if the job has a place for them.
    The list of default callbacks stands in the module of the Trainer, in every release since 4.0.
    """
    from transformers import TrainerCallback, trainer  # noqa: PLC0415 — only scripts that have it

    class Metrics(TrainerCallback):
        def on_train_begin(self, _args, state, *_, **__):
            planned(state.max_steps)

        def on_evaluate(self, *_, **values):
            metrics.update(without_counts(numbers(values.get("metrics") or {})))

    class Checkpoints(TrainerCallback):
        def on_train_begin(self, _args, state, *_, **__):
            checkpoints.begins(state.global_step)

        def on_step_end(self, args, state, control, **_):
            checkpoints.step_ended(args, state, control)

        def on_save(self, args, state, *_, **__):
            checkpoints.saved(args, state)

        def on_train_end(self, *_, **__):
            checkpoints.ends()

        def on_evaluate(self, *_, **__):
            checkpoints.evaluated()

    trainer.DEFAULT_CALLBACKS.append(Metrics)
    if checkpoints:
        trainer.DEFAULT_CALLBACKS.append(Checkpoints)
        checkpoints.install(trainer.Trainer)


def _lightning(packages):
    """The Lightning that a script imports; where both are installed, each has a Trainer."""
    names = ["lightning.pytorch", "pytorch_lightning"]
    if "pytorch_lightning" in packages and "lightning" not in packages:
        names.reverse()
    try:
        return importlib.import_module(names[0])
    except ImportError:
        return importlib.import_module(names[1])


def listen_to_lightning(metrics, planned, checkpoints=None, more=lambda _: [], packages=()):
    """Take the metrics of every Lightning Trainer made from now on, and how many steps it plans.

    ``checkpoints`` (LightningCheckpoints) saves and loads them, if the job has a place for them.
    ``more`` makes other callbacks, of Lightning itself. ``packages`` are those that the script
    imports.
    """
    pl = _lightning(packages)

    class Metrics(pl.Callback):
        def on_train_start(self, trainer, _module):
            steps = trainer.estimated_stepping_batches
            planned(int(steps) if steps != float("inf") else 0)

        def on_validation_end(self, trainer, _module):
            if not trainer.sanity_checking:  # the validation before training
                values = {key: value.item() for key, value in trainer.callback_metrics.items()}
                metrics.update(numbers(values))

    class Checkpoints(pl.Callback):
        def on_train_start(self, trainer, _module):
            checkpoints.begins(trainer.global_step)

        def on_train_batch_end(self, trainer, *_, **__):
            checkpoints.batch_ended(trainer)

        def on_save_checkpoint(self, _trainer, _module, checkpoint):
            checkpoints.saving(checkpoint)

        def on_load_checkpoint(self, _trainer, _module, checkpoint):
            checkpoints.loaded(checkpoint)

    original = pl.Trainer.__init__

    @functools.wraps(original)  # Lightning's command line takes the Trainer's arguments from it
    def initialise(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.callbacks += [Metrics(), *([Checkpoints()] if checkpoints else []), *more(pl)]

    pl.Trainer.__init__ = initialise
    if checkpoints:
        checkpoints.install(pl.Trainer)


def endless_epochs(pl):
    """A callback for a segment, which may have more steps than the script's epochs.

    ``max_epochs`` grows by one epoch at a time, since schedules may read it.
    """

    class Endless(pl.Callback):
        def on_train_epoch_end(self, trainer, _module):
            loop, following = trainer.fit_loop, trainer.current_epoch + 1
            if 0 <= loop.max_epochs <= following:  # -1: without a limit
                loop.max_epochs = following + 1

    return Endless()
