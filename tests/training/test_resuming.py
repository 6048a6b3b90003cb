"""Scripts that are stopped and started again: their evidence goes on where they do."""

import json
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from compilegate_runtime.compilers import NoCompiler
from compilegate_runtime.device import Processor
from compilegate_runtime.launching import frameworks, trainer_checkpoints
from compilegate_runtime.launching.checkpoints import KeptEvidence
from compilegate_runtime.launching.trainer_checkpoints import (
    LightningCheckpoints,
    TrainerCheckpoints,
)
from compilegate_runtime.ranks import Ranks
from compilegate_runtime.recorder import Recorder
from compilegate_runtime.saving import AgreedSaves, SaveSchedule

from tests.training.jobs import after_steps
from tests.training.stand_ins import Clock
from tests.training.test_launch import SCRIPTS, TRAINER

OWN = {"script": SCRIPTS / "resuming.py", "argument_names": '{"seed": null}', "full_run_steps": 12}


def stopped_after(jobs, steps, variables, **settings):
    """Run a job that SIGTERM stops after so many steps."""
    done = jobs.interrupt("launch.py", variables, when=after_steps(steps), **settings)
    assert 143 == done.status, done.output
    return done


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
    stopped = stopped_after(jobs, 5, where, **OWN, folder=folder, pause=0.4)
    first, lines = stopped.summary(), stopped.steps()
    done = jobs.run("launch.py", where, **OWN, folder=folder, pause=0.4)
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
    first = stopped_after(jobs, 5, where, **OWN, folder=folder, pause=0.4)
    done = jobs.run("launch.py", where, **OWN, folder=folder, resume="no")

    assert 0 == done.status, done.output
    assert "restarted" not in first.summary()
    assert ([], True) == (done.summary()["resumed"], done.summary()["restarted"])
    assert list(range(1, 13)) == numbers(done)


@pytest.mark.training
def test_a_checkpoint_of_other_settings_has_no_evidence_to_go_on_with(jobs, place):
    where, folder = place
    own = {**OWN, "full_run_steps": 0}
    stopped_after(jobs, 5, where, **own, folder=folder, pause=0.4)
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


def saves_of(clock, minutes=5.0):
    return AgreedSaves(SaveSchedule(minutes, clock), Ranks(0, 1), clock)


def a_process(monkeypatch, where, name, steps):
    """A process that has taken some steps of a Lightning script: recorder, listener, Trainer."""
    recorder = Recorder(where / name, {}, steps=None, compiler=NoCompiler(), device=Processor())
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


def take_step(recorder):
    recorder.begin_step()
    recorder.end_step(1.0, samples=2)


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


class Trainer:
    """As much of a Hugging Face Trainer as going on needs."""

    def train(self, resume_from_checkpoint=None):
        return resume_from_checkpoint


class TrainerProcess:
    """A process of a Trainer's script: its recorder, its checkpoints, and what it may do."""

    def __init__(self, folder, name, settings):
        self.output, self.clock = folder / f"output-{name}", Clock()
        self.recorder = Recorder(
            folder / name, {}, steps=None, compiler=NoCompiler(), device=Processor()
        )
        kept = KeptEvidence(self.recorder, folder, settings)
        saves = saves_of(self.clock)
        self.checkpoints = TrainerCheckpoints(self.recorder, kept, folder, saves, Ranks(0, 1))
        kind = type("Trainer", (Trainer,), {"train": Trainer.train})
        self.checkpoints.install(kind)
        self.trainer = kind()
        self.args = SimpleNamespace(
            output_dir=str(self.output), save_only_model=True, save_total_limit=1
        )
        self.state = SimpleNamespace(global_step=0, best_model_checkpoint=None)
        self.saved_with = []

    def train(self, steps, *, saves=(), seconds=1.0, state="optimizer.pt"):
        """Take steps; the script itself asks for a checkpoint after those in ``saves``."""
        for _ in range(steps):
            take_step(self.recorder)
            self.clock.now += seconds
            self.state.global_step = self.recorder.steps_done
            control = SimpleNamespace(should_save=self.state.global_step in saves)
            self.checkpoints.step_ended(self.args, self.state, control)
            if control.should_save:
                self._save(state)

    def _save(self, state):
        step = self.state.global_step
        folder = self.output / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "weights.bin").write_text(f"weights of step {step}")
        (folder / state).write_text("")
        self.saved_with.append((self.args.save_only_model, self.args.save_total_limit))
        self.checkpoints.saved(self.args, self.state)


@pytest.fixture
def trainers(tmp_path, monkeypatch):
    """Makes processes of a Trainer's script in one job's folders."""
    stopping = SimpleNamespace(requested=False)
    monkeypatch.setattr(trainer_checkpoints, "Stopping", lambda: stopping)
    return SimpleNamespace(
        made=lambda name, **settings: TrainerProcess(tmp_path, name, settings),
        folder=tmp_path / "progress",
    )


def kept(trainers):
    return sorted(path.name for path in trainers.folder.glob("checkpoint-*"))


def test_a_trainer_saves_every_few_minutes_without_being_asked_to(trainers):
    first = trainers.made("first", seed=1)
    first.train(11, seconds=60)

    assert ["checkpoint-10", "checkpoint-5"] == kept(trainers)
    # With the optimizer's state, and without counting against the script's own checkpoints.
    assert [(False, None)] * 2 == first.saved_with
    assert (True, 1) == (first.args.save_only_model, first.args.save_total_limit)
    assert [] == list(first.output.iterdir())


def test_a_trainer_that_saves_often_by_itself_saves_no_more(trainers):
    first = trainers.made("first", seed=1)
    first.train(12, seconds=60, saves=(4, 8, 12))

    assert 3 == len(first.saved_with) == len(list(first.output.iterdir()))


def test_a_save_that_was_due_when_the_script_saved_keeps_the_scripts_checkpoint(trainers):
    first = trainers.made("first", seed=1)
    first.train(5, seconds=60, saves=(5,))

    assert [(False, 1)] == first.saved_with
    assert ["checkpoint-5"] == [path.name for path in first.output.iterdir()]


def test_a_trainer_trains_on_from_the_newest_checkpoint_of_its_own_settings(trainers):
    first = trainers.made("first", seed=1)
    assert first.trainer.train() is None
    first.train(10, saves=(8, 9, 10))

    assert ["checkpoint-10", "checkpoint-9"] == kept(trainers)
    assert first.trainer.train() is None  # it has begun by itself
    assert trainers.made("other", seed=2).trainer.train() is None
    second = trainers.made("second", seed=1)
    assert str(trainers.folder / "checkpoint-10") == second.trainer.train()
    assert "its own" == second.trainer.train("its own")
    second.checkpoints.begins(10)
    assert (10, [10]) == (second.recorder.steps_done, second.recorder.resumed)


def test_where_the_newest_checkpoint_came_back_half_the_one_before_it_serves(trainers):
    trainers.made("first", seed=1).train(4, saves=(3, 4))
    (trainers.folder / "checkpoint-4" / "weights.bin").unlink()
    second = trainers.made("second", seed=1)
    assert str(trainers.folder / "checkpoint-3") == second.trainer.train()
    second.checkpoints.begins(3)
    assert (3, [3]) == (second.recorder.steps_done, second.recorder.resumed)
    (trainers.folder / "checkpoint-3" / "weights.bin").unlink()

    assert trainers.made("third", seed=1).trainer.train() is None


def test_a_trainers_checkpoint_without_an_optimizers_state_is_not_trained_on_from(trainers):
    first = trainers.made("first", seed=1)
    first.train(4, saves=(4,))
    first.train(1, saves=(5,), state="config.json")

    assert str(trainers.folder / "checkpoint-4") == trainers.made("second", seed=1).trainer.train()


def test_a_trainers_checkpoint_whose_evidence_is_lost_has_evidence_from_there_on(trainers):
    trainers.made("first", seed=1).train(4, saves=(4,))
    shutil.rmtree(trainers.folder.parent / "evidence")
    second = trainers.made("second", seed=1).checkpoints
    second.begins(4)
    recorder = second._recorder
    recorder.write_summary()
    summary = json.loads((recorder.folder / "summary.json").read_text())

    assert ([4], 4, None) == (
        summary["resumed"], summary["steps_without_evidence"], summary["wall_seconds"],
    )  # fmt: skip


LONG = {**TRAINER, "num_train_epochs": 40, "save_strategy": "steps", "save_steps": 15}


@pytest.mark.training
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_trainers_script_goes_on_from_the_step_at_which_it_was_stopped(jobs, place):
    where, _ = place
    # The checkpoint at step 19 has no optimizer's state then, and the one of the stop has, which
    # comes before step 38.
    long = {**LONG, "save_only_model": True, "save_steps": 19}
    stopped = stopped_after(jobs, 20, where, **long)
    first, lines = stopped.summary(), stopped.steps()
    steps = first["steps"]
    done = jobs.run("launch.py", where, **long)
    assert 0 == done.status, done.output
    summary = done.summary()

    assert f"stopped by SIGTERM after step {steps}; its checkpoint is saved" == first["reason"]
    assert steps == len(lines) < 160
    assert list(range(1, 161)) == numbers(done)
    assert ([steps], True) == (summary["resumed"], summary["finished"])
    assert first["initial_weights_sha256"] == summary["initial_weights_sha256"] is not None
    assert {"eval_accuracy", "eval_loss"} <= summary["metrics"].keys()
    assert 160 * 4 == summary["ranks"]["samples"]
    assert summary["wall_seconds"] > first["wall_seconds"]


# No checkpoint is the script's own; one is made as often as the bounded share of time allows.
BY_TIME = {**TRAINER, "num_train_epochs": 60, "save_strategy": "no", "checkpoint_minutes": 1e-4}


@pytest.mark.training
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_trainers_script_that_was_killed_goes_on_from_its_last_save_by_time(jobs, place):
    where, folder = place
    killed = jobs.interrupt(
        "launch.py", where, when=lambda _: list(folder.glob("progress/checkpoint-*[0-9]")),
        by=signal.SIGKILL, **BY_TIME,
    )  # fmt: skip
    assert -9 == killed.status, killed.output
    done = jobs.run("launch.py", where, **BY_TIME)
    assert 0 == done.status, done.output
    summary = done.summary()
    (went_on,) = summary["resumed"]

    assert 0 < went_on < 240
    assert list(range(1, 241)) == numbers(done)
    assert (True, 240 * 4) == (summary["finished"], summary["ranks"]["samples"])
    assert summary["initial_weights_sha256"] is not None
