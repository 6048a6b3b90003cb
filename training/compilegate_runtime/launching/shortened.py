"""Lets a script come to its end after a few steps, for ``compilegate try``.

Its training data ends after them and its held-out data after as many batches, so that it evaluates
and reports as a whole run does. A script that does not read its data through a loader goes on until
it has reported a metric.
"""

from compilegate_runtime.launching.steps import Enough

MOST_STEPS = 200  # of a script without a loader
MOST_EPOCHS = 10_000  # without data, where the script evaluates after the last one


class Shortened:
    """A run of ``few`` steps; ``reported()`` says whether the script has reported a metric."""

    def __init__(self, few, recorder, reported):
        self._few, self._recorder, self._reported = few, recorder, reported
        self._empty = 0

    @property
    def over(self):
        """Whether the steps are done and the script has seen its data end."""
        return self._empty > 0

    def batches(self, source, steps, loader):
        """The batches of a loader, as many as a short run has."""
        for number, batch in enumerate(source):
            training = loader is steps.training_loader
            if training and self._done():
                break
            if not training and steps.training_loader is not None and number >= self._few:
                break
            yield batch
        if loader is steps.training_loader and self._done():
            self._empty += 1
            if self._empty > 1 and (self._reported() or self._empty > MOST_EPOCHS):
                raise Enough

    def lightning_callback(self, pl):
        """Tell a Trainer of Lightning the length: it validates when all its batches are seen."""
        few = self._few

        class Short(pl.Callback):
            def setup(self, trainer, *_, **__):
                trainer.limit_train_batches = few * trainer.accumulate_grad_batches
                trainer.val_check_interval = 1.0  # of an epoch
                trainer.check_val_every_n_epoch = 1

        return Short()

    def stepped(self, steps):
        """A step is over."""
        enough = self._reported() or self._recorder.steps_done >= MOST_STEPS
        if steps.training_loader is None and self._done() and enough:
            raise Enough

    def _done(self):
        return self._recorder.steps_done >= self._few
