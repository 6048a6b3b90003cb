"""A short run's data ends after a few steps, so that the script evaluates and reports."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from compilegate_runtime.launching import shortened
from compilegate_runtime.launching.shortened import Shortened
from compilegate_runtime.launching.steps import Enough


class Script:
    """A loop over epochs, as scripts have it; ``metrics`` are those that it has reported."""

    def __init__(self, few=2, *, loader=True):
        self.recorder, self.metrics, self.seen = SimpleNamespace(steps_done=0), [], []
        self.steps = SimpleNamespace(training_loader=None)
        self.short = Shortened(few, self.recorder, lambda: bool(self.metrics))
        self.loader = loader

    def step(self, name="train"):
        self.steps.training_loader = name if self.loader else None
        self.recorder.steps_done += 1
        self.short.stepped(self.steps)

    def epoch(self, accumulate=1):
        for number in self.short.batches(iter(range(100)), self.steps, "train"):
            self.seen.append(number)
            if (number + 1) % accumulate == 0:
                self.step()

    def evaluate(self):
        return list(self.short.batches(iter(range(100)), self.steps, "held out"))


def test_training_data_ends_after_the_steps_and_held_out_data_after_as_many_batches():
    script = Script()
    script.epoch()

    assert [0, 1] == script.seen
    assert [0, 1] == script.evaluate()
    assert script.short.over


def test_accumulated_batches_are_all_there():
    script = Script()
    script.epoch(accumulate=4)

    assert 8 == len(script.seen)


def test_a_validation_before_training_is_whole():
    assert 100 == len(Script().evaluate())


def test_later_epochs_are_empty_until_a_metric_is_reported_and_then_it_is_enough():
    script = Script()
    for _ in range(5):
        script.epoch()
    assert [0, 1] == script.seen

    script.metrics.append("eval_loss")
    with pytest.raises(Enough):
        script.epoch()


def test_a_script_that_asks_for_data_for_ever_is_ended(monkeypatch):
    monkeypatch.setattr(shortened, "MOST_EPOCHS", 5)
    script = Script()

    with pytest.raises(Enough):
        for _ in range(10):
            script.epoch()


def test_without_a_loader_it_goes_on_until_a_metric_is_reported():
    script = Script(loader=False)
    for _ in range(10):
        script.step()
    script.metrics.append("eval_loss")

    with pytest.raises(Enough):
        script.step()


def test_without_a_loader_or_a_metric_it_ends_after_some_steps(monkeypatch):
    monkeypatch.setattr(shortened, "MOST_STEPS", 5)
    script = Script(loader=False)
    with pytest.raises(Enough):
        for _ in range(10):
            script.step()

    assert 5 == script.recorder.steps_done
