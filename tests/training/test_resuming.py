"""Scripts that are stopped and started again: their evidence goes on where they do."""

import json
import shutil
import signal
import sys
import time
from types import SimpleNamespace

import pytest
from compilegate_runtime.compilers import NoCompiler
from compilegate_runtime.device import Processor
from compilegate_runtime.launching import frameworks, resuming
from compilegate_runtime.launching.kept_evidence import KeptEvidence
from compilegate_runtime.recorder import Recorder

from tests.training.test_launch import SCRIPTS, TRAINER

OWN = {"script": SCRIPTS / "resuming.py", "argument_names": '{"seed": null}', "full_run_steps": 12}


def stopped_after(jobs, steps, variables, **settings):
    """Start a job, tell it to stop after so many steps, and return its summary and lines."""
    process, folder = jobs.start("launch.py", variables, **settings)
    lines = folder / "data" / "evidence" / "steps.jsonl"
    while process.poll() is None and not (lines.exists() and lines.read_text().count("\n") > steps):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert 143 == process.returncode, output
    return json.loads((lines.parent / "summary.json").read_text()), lines.read_text().splitlines()


def numbers(done):
    return [line["step"] for line in done.steps()]


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    return {"COMPILEGATE_CHECKPOINT_DIR": str(folder)}, folder


@pytest.mark.training
def test_the_evidence_of_a_script_goes_on_where_it_loads_its_checkpoint(jobs, place):
    where, folder = place
    first, lines = stopped_after(jobs, 5, where, **OWN, folder=folder, pause=0.4)
    done = jobs.run("launch.py", where, **OWN, folder=folder, pause=0.4)
    whole = jobs.run("launch.py", **OWN, folder=folder.parent)
    assert (0, 0) == (done.status, whole.status), done.output + whole.output
    found = done.summary()
    (went_on,) = found["resumed"]

    assert list(range(1, 13)) == numbers(done)
    assert went_on % 2 == 0
    assert went_on <= len(lines)
    assert lines[:went_on] == [json.dumps(x, separators=(",", ":")) for x in done.steps()[:went_on]]
    assert [x["loss"] for x in whole.steps()] == [x["loss"] for x in done.steps()]
    assert first["initial_weights_sha256"] == found["initial_weights_sha256"] is not None
    assert first["initial_loss"] == found["initial_loss"]
    assert found["wall_seconds"] > first["wall_seconds"]
    assert 12 * 8 == found["ranks"]["samples"]
    assert "restarted" not in found


@pytest.mark.training
def test_a_script_that_begins_again_has_evidence_that_begins_again_and_says_so(jobs, place):
    where, folder = place
    first, _ = stopped_after(jobs, 5, where, **OWN, folder=folder, pause=0.4)
    done = jobs.run("launch.py", where, **OWN, folder=folder, resume="no")

    assert 0 == done.status, done.output
    assert "restarted" not in first
    assert ([], True) == (done.summary()["resumed"], done.summary()["restarted"])
    assert list(range(1, 13)) == numbers(done)


@pytest.mark.training
def test_a_checkpoint_of_other_settings_has_no_evidence_to_go_on_with(jobs, place):
    where, folder = place
    own = {**OWN, "full_run_steps": 0}
    stopped_after(jobs, 5, where, **own, folder=folder, pause=0.4)
    done = jobs.run("launch.py", where, **own, folder=folder, seed=9)
    found = done.summary()

    assert 0 == done.status, done.output
    assert ([0], None, None) == (
        found["resumed"], found["steps_without_evidence"], found["wall_seconds"],
    )  # fmt: skip
    assert (None, None) == (found["initial_loss"], found["initial_weights_sha256"])
    assert 0 < len(numbers(done)) < 12


class FromLightning:
    """As much of Lightning as listening to it needs."""

    class Callback:
        pass

    class Trainer:
        def __init__(self):
            self.callbacks = []


def a_process(monkeypatch, where, name, steps):
    """A process that has taken some steps of a Lightning script: its recorder and listener."""
    recorder = Recorder(where / name, {}, steps=None, compiler=NoCompiler(), device=Processor())
    kept = KeptEvidence(recorder, where, {"seed": 1})
    lightning = type(FromLightning.Trainer)("Trainer", (FromLightning.Trainer,), {})
    module = SimpleNamespace(Callback=FromLightning.Callback, Trainer=lightning)
    monkeypatch.setitem(sys.modules, "lightning", SimpleNamespace(pytorch=module))
    monkeypatch.setitem(sys.modules, "lightning.pytorch", module)
    frameworks.listen_to_lightning({}, None, resuming.LightningCheckpoints(recorder, kept))
    for _ in range(steps):
        recorder.begin_step()
        recorder.end_step(1.0, samples=2)
    return recorder, lightning().callbacks[0]


def test_lightnings_checkpoints_say_which_evidence_is_theirs(tmp_path, monkeypatch):
    _, first = a_process(monkeypatch, tmp_path, "first", steps=3)
    checkpoint, later = {"state_dict": {}}, {}
    first.on_save_checkpoint(None, None, checkpoint)
    first.on_save_checkpoint(None, None, later)
    second, listener = a_process(monkeypatch, tmp_path, "second", steps=0)
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
    recorder, first = a_process(monkeypatch, tmp_path, "first", steps=3)
    early, late = {}, {}
    first.on_save_checkpoint(None, None, early)
    recorder.begin_step()
    recorder.end_step(1.0, samples=2)
    first.on_save_checkpoint(None, None, late)
    second, listener = a_process(monkeypatch, tmp_path, "second", steps=0)
    listener.on_load_checkpoint(None, None, early)
    third, other = a_process(monkeypatch, tmp_path, "third", steps=0)
    other.on_load_checkpoint(None, None, late)

    assert (3, 3) == (second.steps_done, len((second.folder / "steps.jsonl").open().readlines()))
    assert (0, [0]) == (third.steps_done, third.resumed)  # of a way that was left


class Trainer:
    """As much of a Hugging Face Trainer as going on needs."""

    def train(self, resume_from_checkpoint=None):
        return resume_from_checkpoint


@pytest.fixture
def trainers(tmp_path, monkeypatch):
    """Makes a process of a Trainer's script: its recorder, its checkpoints, its Trainer."""

    def made(name, **settings):
        monkeypatch.setattr(resuming, "Stopping", lambda: SimpleNamespace(told=False))
        recorder = Recorder(
            tmp_path / name, {}, steps=None, compiler=NoCompiler(), device=Processor()
        )
        kept = KeptEvidence(recorder, tmp_path, settings)
        checkpoints = resuming.TrainerCheckpoints(recorder, kept, tmp_path)
        trainer = type("Trainer", (Trainer,), {"train": Trainer.train})
        checkpoints.install(trainer)
        return recorder, checkpoints, trainer()

    def saved(checkpoints, recorder, step, state="optimizer.pt"):
        while recorder.steps_done < step:
            recorder.begin_step()
            recorder.end_step(1.0, samples=2)
        folder = tmp_path / "output" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "weights.bin").write_text(f"weights of step {step}")
        (folder / state).write_text("")
        checkpoints.saved(folder, step)

    return SimpleNamespace(made=made, saved=saved, folder=tmp_path / "progress")


def test_a_trainer_trains_on_from_the_newest_checkpoint_of_its_own_settings(trainers):
    recorder, checkpoints, first = trainers.made("first", seed=1)
    assert first.train() is None
    for step in (9, 10):
        trainers.saved(checkpoints, recorder, step)

    assert ["checkpoint-10"] == [path.name for path in trainers.folder.glob("checkpoint-*")]
    assert first.train() is None  # it has begun by itself
    _, _, other = trainers.made("other", seed=2)
    assert other.train() is None
    second, going_on, trainer = trainers.made("second", seed=1)
    assert str(trainers.folder / "checkpoint-10") == trainer.train()
    assert "its own" == trainer.train("its own")
    going_on.begins(10)
    assert (10, [10]) == (second.steps_done, second.resumed)


def test_a_trainers_checkpoint_that_came_back_half_is_not_trained_on_from(trainers):
    recorder, checkpoints, _ = trainers.made("first", seed=1)
    trainers.saved(checkpoints, recorder, 4)
    (trainers.folder / "checkpoint-4" / "weights.bin").unlink()
    _, _, trainer = trainers.made("second", seed=1)

    assert trainer.train() is None


def test_a_trainers_checkpoint_without_an_optimizers_state_is_not_trained_on_from(trainers):
    recorder, checkpoints, _ = trainers.made("first", seed=1)
    trainers.saved(checkpoints, recorder, 4)
    trainers.saved(checkpoints, recorder, 5, state="config.json")
    _, _, trainer = trainers.made("second", seed=1)

    assert str(trainers.folder / "checkpoint-4") == trainer.train()


LONG = {**TRAINER, "num_train_epochs": 40, "save_strategy": "steps", "save_steps": 15}


@pytest.mark.training
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_trainers_script_goes_on_from_the_step_at_which_it_was_stopped(jobs, place):
    where, _ = place
    # The checkpoint at step 15 has no optimizer's state then, and the one of the stop has.
    long = {**LONG, "save_only_model": True}
    first, lines = stopped_after(jobs, 20, where, **long)
    steps = first["steps"]
    done = jobs.run("launch.py", where, **long)
    assert 0 == done.status, done.output
    found = done.summary()

    assert f"stopped by SIGTERM after step {steps}; its checkpoint is saved" == first["reason"]
    assert steps == len(lines) < 160
    assert list(range(1, 161)) == numbers(done)
    assert ([steps], True) == (found["resumed"], found["finished"])
    assert first["initial_weights_sha256"] == found["initial_weights_sha256"] is not None
    assert {"eval_accuracy", "eval_loss"} <= found["metrics"].keys()
    assert 160 * 4 == found["ranks"]["samples"]
    assert found["wall_seconds"] > first["wall_seconds"]


@pytest.mark.training
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_trainers_checkpoint_whose_evidence_is_lost_is_told(jobs, place):
    where, folder = place
    first, _ = stopped_after(jobs, 20, where, **LONG)
    shutil.rmtree(folder / "progress" / "evidence")
    done = jobs.run("launch.py", where, **LONG)
    assert 0 == done.status, done.output
    found, steps = done.summary(), first["steps"]

    assert list(range(steps + 1, 161)) == numbers(done)
    assert ([steps], steps) == (found["resumed"], found["steps_without_evidence"])
    assert (None, None, None) == (
        found["wall_seconds"], found["initial_loss"], found["initial_weights_sha256"],
    )  # fmt: skip
