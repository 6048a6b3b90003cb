"""Scripts that are stopped and started again: their evidence goes on where they do."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from compilegate_runtime.launching import frameworks
from compilegate_runtime.launching.checkpoints import KeptEvidence
from compilegate_runtime.launching.trainer_checkpoints import (
    LightningCheckpoints,
)
from compilegate_runtime.ranks import Ranks

from tests.training.jobs import numbers, stopped_after
from tests.training.stand_ins import Clock, recorder_in, saves_of, take_step
from tests.training.test_launch import SCRIPTS

OWN = {"script": SCRIPTS / "resuming.py", "argument_names": '{"seed": null}', "full_run_steps": 12}


@pytest.mark.training
def test_the_evidence_of_a_script_goes_on_where_it_loads_its_checkpoint(jobs, place):
    where, folder = place
    stopped = stopped_after(jobs, 5, where, **OWN, folder=folder, pause=0.2)
    first, lines = stopped.summary(), stopped.steps()
    done = jobs.run("launch.py", where, **OWN, folder=folder, pause=0.2)
    whole = jobs.run("launch.py", **OWN, folder=folder.parent)
    assert (0, 0) == (done.status, whole.status), done.output + whole.output
    summary = done.summary()
    (went_on,) = summary["resumed"]

    assert list(range(1, 13)) == numbers(done)
    assert went_on % 2 == 0
    assert went_on <= len(lines)
    assert lines[:went_on] == done.steps()[:went_on]
    assert [x["loss"] for x in whole.steps()] == [x["loss"] for x in done.steps()]
    assert first["initial_weights_sha256"] == summary["initial_weights_sha256"] is not None
    assert first["initial_loss"] == summary["initial_loss"]
    assert summary["wall_seconds"] > first["wall_seconds"]
    assert 12 * 8 == summary["ranks"]["samples"]
    assert "restarted" not in summary


@pytest.mark.training
def test_a_script_that_begins_again_has_evidence_that_begins_again_and_says_so(jobs, place):
    where, folder = place
    first = stopped_after(jobs, 5, where, **OWN, folder=folder, pause=0.2)
    done = jobs.run("launch.py", where, **OWN, folder=folder, resume="no")

    assert 0 == done.status, done.output
    assert "restarted" not in first.summary()
    assert ([], True) == (done.summary()["resumed"], done.summary()["restarted"])
    assert list(range(1, 13)) == numbers(done)


@pytest.mark.training
def test_a_checkpoint_of_other_settings_has_no_evidence_to_go_on_with(jobs, place):
    where, folder = place
    own = {**OWN, "full_run_steps": 0}
    stopped_after(jobs, 5, where, **own, folder=folder, pause=0.2)
    done = jobs.run("launch.py", where, **own, folder=folder, seed=9)
    summary = done.summary()

    assert 0 == done.status, done.output
    assert ([0], None, None) == (
        summary["resumed"], summary["steps_without_evidence"], summary["wall_seconds"],
    )  # fmt: skip
    assert (None, None) == (summary["initial_loss"], summary["initial_weights_sha256"])
    assert 0 < len(numbers(done)) < 12


class FromLightning:
    """As much of Lightning as listening to it needs."""

    class Callback:
        pass

    class Trainer:
        def __init__(self):
            self.callbacks = []
            self.global_step = 0

        def fit(self, model, datamodule=None, *, ckpt_path=None):
            return model, datamodule, ckpt_path

        def save_checkpoint(self, path):
            checkpoint = {}
            self.callbacks[-1].on_save_checkpoint(self, None, checkpoint)
            Path(path).write_text(json.dumps(checkpoint))


def a_process(monkeypatch, where, name, steps):
    """A process that has taken some steps of a Lightning script: recorder, listener, Trainer."""
    recorder = recorder_in(where / name)
    kept, clock = KeptEvidence(recorder, where, {"seed": 1}), Clock()
    lightning = type(FromLightning.Trainer)("Trainer", (FromLightning.Trainer,), {})
    module = SimpleNamespace(Callback=FromLightning.Callback, Trainer=lightning)
    monkeypatch.setitem(sys.modules, "lightning", SimpleNamespace(pytorch=module))
    monkeypatch.setitem(sys.modules, "lightning.pytorch", module)
    checkpoints = LightningCheckpoints(recorder, kept, where, saves_of(clock), Ranks(0, 1))
    frameworks.listen_to_lightning({}, None, checkpoints)
    for _ in range(steps):
        take_step(recorder)
    trainer = lightning()
    trainer.clock, trainer.recorder = clock, recorder
    return recorder, trainer.callbacks[-1], trainer


def train_on(trainer, steps, seconds, batches=2):
    """Steps of so many batches each, of ``seconds`` each."""
    for _ in range(steps):
        for batch in range(batches):
            if batch == batches - 1:
                take_step(trainer.recorder)
                trainer.global_step += 1
                trainer.clock.now += seconds
            trainer.callbacks[-1].on_train_batch_end(trainer, None, None, None, batch)


def test_lightning_saves_every_few_minutes_and_the_next_process_fits_on_from_there(
    tmp_path, monkeypatch
):
    _, _, first = a_process(monkeypatch, tmp_path, "first", steps=0)
    train_on(first, steps=16, seconds=60)
    second, listener, trainer = a_process(monkeypatch, tmp_path, "second", steps=0)
    model, data, path = trainer.fit("model", "data")
    listener.on_load_checkpoint(None, None, json.loads(Path(path).read_text()))

    names = sorted(place.name for place in (tmp_path / "progress").glob("checkpoint-*"))
    assert ["checkpoint-10", "checkpoint-15"] == names
    assert ("model", "data", str(tmp_path / "progress/checkpoint-15/trainer.ckpt")) == (
        model, data, path,
    )  # fmt: skip
    assert (15, [15]) == (second.steps_done, second.resumed)


def test_lightning_fits_on_from_the_checkpoint_that_a_script_names(tmp_path, monkeypatch):
    _, _, first = a_process(monkeypatch, tmp_path, "first", steps=0)
    train_on(first, steps=6, seconds=60)
    _, _, trainer = a_process(monkeypatch, tmp_path, "second", steps=0)

    assert "its own" == trainer.fit("model", ckpt_path="its own")[2]


def test_lightnings_checkpoints_say_which_evidence_is_theirs(tmp_path, monkeypatch):
    _, first, _ = a_process(monkeypatch, tmp_path, "first", steps=3)
    checkpoint, later = {"state_dict": {}}, {}
    first.on_save_checkpoint(None, None, checkpoint)
    first.on_save_checkpoint(None, None, later)
    second, listener, _ = a_process(monkeypatch, tmp_path, "second", steps=0)
    listener.on_load_checkpoint(None, None, {"state_dict": {}})
    assert 0 == second.steps_done
    listener.on_load_checkpoint(None, None, checkpoint)
    second.write_summary()

    assert (3, [3]) == (second.steps_done, second.resumed)
    assert 6 == json.loads((second.folder / "summary.json").read_text())["ranks"]["samples"]
    assert [1, 2, 3] == [
        json.loads(line)["step"] for line in (second.folder / "steps.jsonl").open()
    ]


def test_a_checkpoint_of_an_earlier_step_has_the_evidence_up_to_it(tmp_path, monkeypatch):
    recorder, first, _ = a_process(monkeypatch, tmp_path, "first", steps=3)
    early, late = {}, {}
    first.on_save_checkpoint(None, None, early)
    take_step(recorder)
    first.on_save_checkpoint(None, None, late)
    second, listener, _ = a_process(monkeypatch, tmp_path, "second", steps=0)
    listener.on_load_checkpoint(None, None, early)
    third, other, _ = a_process(monkeypatch, tmp_path, "third", steps=0)
    other.on_load_checkpoint(None, None, late)

    assert (3, 3) == (second.steps_done, len((second.folder / "steps.jsonl").open().readlines()))
    assert (0, [0]) == (third.steps_done, third.resumed)  # of a way that was left
