"""Where the steps of a script's own loop begin and end, and what sets its random numbers."""

import random
import sys
from types import SimpleNamespace

import pytest
from compilegate_runtime import seeds
from compilegate_runtime.fingerprint import InitialWeights
from compilegate_runtime.launching import frameworks
from compilegate_runtime.launching.steps import Enough, Steps

from tests.training.test_launch import BARE


class Notes:
    """A recorder that notes its calls."""

    def __init__(self, planned):
        self.said, self.steps_done, self.ended, self.resumed = [], 0, [], []
        self._planned = planned

    def goes_on(self):
        return self.steps_done < self._planned

    def begin_step(self):
        self.said.append("begin")

    def got_batch(self):
        self.said.append("batch")

    def end_step(self, *numbers, **more):
        self.said.append("end")
        self.steps_done += 1
        self.ended.append(numbers)


def steps_of(limit):
    models = SimpleNamespace(
        stop_watching=lambda: None, initial_loss=None, initial_loss_known=True,
        initial_weights=InitialWeights(),
    )  # fmt: skip
    return Steps(None, Notes(limit), models, limit=limit)


@pytest.fixture
def steps():
    return steps_of(3)


class Optimizer:
    """As much of an optimizer as ending a step needs."""

    def __init__(self, *weights):
        self.param_groups = [{"lr": 0.1, "params": list(weights)}]


def said(steps, events):
    optimizer = Optimizer()
    loaders = {"train": object(), "eval": object()}
    for event in events.split():
        if event in loaders:
            steps.fetching(loaders[event])
            steps.fetched()
        elif event == "model":
            steps.fed(4, 10)
        elif event == "backward":
            steps._going_backward(lambda *_: None)([])
        else:
            steps.stepped(optimizer)
    return " ".join(steps._recorder.said)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("train model step train model step", "begin batch end begin batch end"),
        # several batches to a step, asked for one by one or together
        ("train model train model step", "begin batch end"),
        ("train model step train train model model step",
         "begin batch end begin batch batch end"),
        # evaluation, before and between
        ("eval train model step", "begin batch begin batch end"),
        ("train model step eval eval train model step", "begin batch end begin batch end"),
        # no loader at all
        ("model step model model step", "begin end begin end"),
    ],
)  # fmt: skip
def test_a_step_begins_with_its_data_or_its_model_and_ends_with_the_optimizer(
    steps, events, expected
):
    assert expected == said(steps, events)


@pytest.mark.parametrize(
    ("has_optimizer", "expected"),
    [(False, "begin batch end begin batch end begin"), (True, "begin batch")],
)
def test_without_an_optimizer_a_step_goes_on_to_the_next_data_or_call(
    steps, has_optimizer, expected
):
    steps.has_optimizer = has_optimizer

    assert expected == said(steps, "train model backward train model model backward model")


def test_a_step_counts_what_all_its_parts_were_fed(steps):
    said(steps, "train model train model step")

    assert [(None, 8, 20)] == steps._recorder.ended


def test_samples_that_several_models_see_count_once(steps):
    for model in ("encoder", "head", "encoder", "head"):
        steps.fed(4, 10, model)
    said(steps, "step")

    assert [(None, 8, 20)] == steps._recorder.ended


@pytest.mark.parametrize(
    ("second", "expected"),
    [("its own weights", 2), ("the same weights", 4)],
)
def test_of_two_optimizers_the_first_ones_steps_count_unless_the_other_succeeds_it(
    second, expected
):
    steps = steps_of(9)
    weight, other = object(), object()
    optimizers = Optimizer(weight), Optimizer(other if second == "its own weights" else weight)
    for optimizer in (optimizers[0], optimizers[1], optimizers[0], optimizers[1]):
        steps.fed(4, None)
        steps.stepped(optimizer)

    assert expected == steps._recorder.steps_done


def test_a_segment_ends_with_its_last_step(steps):
    with pytest.raises(Enough):
        said(steps, "model step model step model step model step")

    assert 3 == steps._recorder.steps_done


@pytest.mark.training
def test_the_losses_of_all_steps_are_seen_however_they_go_backward(jobs):
    done = jobs.run("launch.py", **BARE, how="autograd")

    assert 0 == done.status, done.output
    assert 6 == len(done.steps())
    assert all(line["loss"] > 0 for line in done.steps())


def test_every_seed_of_all_random_numbers_is_moved_by_the_runs_own(monkeypatch):
    said = []

    def setter(name):
        return lambda seed=None, *_: said.append((name, seed))

    names = ("manual_seed", "manual_seed_all")
    torch = SimpleNamespace(
        manual_seed=setter("torch"), cuda=SimpleNamespace(**{name: setter(name) for name in names})
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(random, "seed", setter("random"))
    monkeypatch.setattr(seeds, "_numpy", list)
    seeds.shift_seeds(2)
    for call in (
        random.seed,
        torch.manual_seed,
        torch.cuda.manual_seed,
        torch.cuda.manual_seed_all,
    ):
        call(7)
    random.seed("words")

    moved = 7 + 2 * seeds.SEED_STRIDE
    assert [("random", moved), ("torch", moved), *((name, moved) for name in names)] == said[:4]
    assert ("random", "words") == said[4]


@pytest.mark.parametrize(("max_epochs", "expected"), [(5, 6), (9, 9), (-1, -1)])
def test_a_segment_goes_on_after_the_last_epoch_of_a_lightning_script(max_epochs, expected):
    going_on = frameworks.endless_epochs(SimpleNamespace(Callback=object))
    loop = SimpleNamespace(max_epochs=max_epochs)

    going_on.on_train_epoch_end(SimpleNamespace(fit_loop=loop, current_epoch=4), None)

    assert expected == loop.max_epochs
