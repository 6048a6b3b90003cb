"""A short run's data ends after a few steps, so that the script evaluates and reports."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from compilegate_runtime.launching import shortened
from compilegate_runtime.launching.shortened import Shortened
from compilegate_runtime.launching.steps import Enough
from compilegate_runtime.observing import few


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

    assert [0, 1] == script.seen == script.evaluate()
    assert script.short.over


def test_accumulated_batches_are_all_there_and_a_validation_before_training_is_whole():
    script = Script()
    before = script.evaluate()
    script.epoch(accumulate=4)

    assert (100, 8) == (len(before), len(script.seen))


@pytest.mark.parametrize(
    ("loader", "times"), [(True, 5), (False, 10)], ids=["by epochs", "without a loader"]
)
def test_it_goes_on_without_data_until_a_metric_is_reported_and_then_it_is_enough(loader, times):
    script = Script(loader=loader)
    go_on = script.epoch if loader else script.step
    for _ in range(times):
        go_on()
    assert ([0, 1] if loader else []) == script.seen

    script.metrics.append("eval_loss")
    with pytest.raises(Enough):
        go_on()


@pytest.mark.parametrize(
    ("loader", "most", "steps"), [(True, "MOST_EPOCHS", 2), (False, "MOST_STEPS", 5)]
)
def test_a_script_that_never_reports_is_ended(monkeypatch, loader, most, steps):
    monkeypatch.setattr(shortened, most, 5)
    script = Script(loader=loader)
    with pytest.raises(Enough):
        for _ in range(10):
            (script.epoch if loader else script.step)()

    assert steps == script.recorder.steps_done


@pytest.mark.parametrize(
    ("step_seconds", "compiling", "steps"),
    [(0.1, 0, 40), (5.0, 0, 11), (20.0, 0, 10), (50.0, 0, 5), (0.1, 60, 40), (2.0, 60, 10)],
    ids=["quick steps: as many as are asked", "slow ones", "slower: ten", "the limit: five",
         "quick steps behind a slow one", "slow steps behind a slower one"],
)  # fmt: skip
def test_a_run_of_slow_steps_ends_before_all_of_them(step_seconds, compiling, steps, monkeypatch):
    recorder, now = SimpleNamespace(steps_done=0), [0.0]
    monkeypatch.setattr(few.time, "monotonic", lambda: now[0])
    short = few.Few(40, 190.0, recorder, lambda: True)
    asked = SimpleNamespace(training_loader="train")
    batches = short.batches(iter(range(100)), asked, "train")
    for _ in batches:
        now[0] += compiling if recorder.steps_done == 1 and compiling else step_seconds
        recorder.steps_done += 1
        short.stepped(asked)

    assert steps == recorder.steps_done
