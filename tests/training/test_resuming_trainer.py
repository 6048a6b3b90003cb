"""Scripts with a Hugging Face Trainer that are stopped and started again."""

import json
import shutil
from types import SimpleNamespace

import pytest
from compilegate_runtime.errors import StoppedError
from compilegate_runtime.launching import trainer_checkpoints
from compilegate_runtime.launching.checkpoints import KeptEvidence
from compilegate_runtime.launching.trainer_checkpoints import TrainerCheckpoints
from compilegate_runtime.ranks import Ranks
from compilegate_runtime.signals import STEP_SECONDS

from tests.training.jobs import numbers, stopped_after
from tests.training.stand_ins import Clock, recorder_in, saves_of, take_step
from tests.training.test_launch import TRAINER, TRAINERS


class Trainer:
    """As much of a Hugging Face Trainer as going on needs."""

    model_wrapped = "model"
    accelerator = SimpleNamespace(distributed_type="MULTI_GPU")

    def __init__(self, process):
        self._process = process

    def train(self, resume_from_checkpoint=None):
        return resume_from_checkpoint

    def _save_checkpoint(self, model, trial):
        assert ("model", None) == (model, trial)
        self._process.write(alone=self._process.args.save_only_model)


class TrainerProcess:
    """A process of a Trainer's script: its recorder, its checkpoints, and what it may do."""

    sharded = False  # whether each process writes a part of the optimizer's state

    def __init__(self, folder, name, settings, ranks):
        self.output, self.clock = folder / f"output-{name}", Clock()
        self.recorder = recorder_in(folder / name)
        kept = KeptEvidence(self.recorder, folder, settings)
        saves = saves_of(self.clock)
        self.checkpoints = TrainerCheckpoints(self.recorder, kept, folder, saves, ranks)
        kind = type("Trainer", (Trainer,), {"train": Trainer.train})
        self.checkpoints.install(kind)
        self.trainer = kind(self)
        self.args = SimpleNamespace(
            output_dir=str(self.output), save_only_model=True, save_total_limit=1
        )
        self.state = SimpleNamespace(global_step=0, best_model_checkpoint=None)
        self.saved_with = []

    def train(self, steps, *, saves=(), seconds=1.0, alone=False, stopping=None):
        """Take steps; the script itself asks for a checkpoint after those in ``saves``.

        ``alone``: of the model alone. ``stopping`` is asked to stop while the Trainer saves.
        """
        for _ in range(steps):
            take_step(self.recorder)
            self.clock.now += seconds
            self.state.global_step = self.recorder.steps_done
            control = SimpleNamespace(should_save=self.state.global_step in saves)
            self.checkpoints.step_ended(self.args, self.state, control)
            if control.should_save:
                self.saved_with.append((self.args.save_only_model, self.args.save_total_limit))
                self.write(alone=alone)
                if stopping:
                    stopping.requested = True
                self.checkpoints.saved(self.args, self.state)

    def write(self, *, alone):
        """Write the checkpoint of this step."""
        step = self.state.global_step
        folder = self.output / f"checkpoint-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights.bin").write_text(f"weights of step {step}")
        if self.sharded:
            (folder / "optimizer_0").mkdir()
        else:
            (folder / ("config.json" if alone else "optimizer.pt")).write_text("")


@pytest.fixture
def trainers(tmp_path, monkeypatch):
    """Makes processes of a Trainer's script in one job's folders."""
    stopping = SimpleNamespace(requested=False)
    monkeypatch.setattr(trainer_checkpoints, "Stopping", lambda: stopping)
    return SimpleNamespace(
        made=lambda name, **settings: TrainerProcess(tmp_path, name, settings, Ranks(0, 1)),
        first_of=lambda count, name, store=None: TrainerProcess(
            tmp_path, name, {"seed": 1}, Ranks(0, count, store)
        ),
        folder=tmp_path / "progress",
        stopping=stopping,
    )


def kept(trainers):
    return sorted(path.name for path in trainers.folder.glob("checkpoint-*"))


def steps_in(folder):
    return sorted(int(path.name.removeprefix("checkpoint-")) for path in folder.iterdir())


@pytest.mark.parametrize(
    ("steps", "saves", "ours", "its_own", "saved_with"),
    [
        # Every five minutes with the optimizer's state, not counted against the script's own.
        (11, (), [5, 10], [], [(False, None)] * 2),
        (12, (4, 8, 12), [8, 12], [4, 8, 12], [(True, 1)] * 3),
        (5, (5,), [5], [5], [(False, 1)]),  # due when the script saves
    ],
    ids=["unasked", "often enough", "due"],
)
def test_a_trainer_saves_every_few_minutes_beside_what_its_script_saves(
    trainers, *, steps, saves, ours, its_own, saved_with
):
    first = trainers.made("first", seed=1)
    first.train(steps, seconds=60, saves=saves)

    assert (ours, its_own) == (steps_in(trainers.folder), steps_in(first.output))
    assert saved_with == first.saved_with
    assert (True, 1) == (first.args.save_only_model, first.args.save_total_limit)


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
    first.train(1, saves=(5,), alone=True)

    assert str(trainers.folder / "checkpoint-4") == trainers.made("second", seed=1).trainer.train()


def test_a_stop_while_the_model_is_saved_alone_saves_the_optimizers_state_too(trainers):
    first = trainers.made("first", seed=1)
    first.trainer.train()
    first.checkpoints.begins(0)
    with pytest.raises(StoppedError):
        first.train(4, saves=(4,), alone=True, stopping=trainers.stopping)

    assert str(trainers.folder / "checkpoint-4") == trainers.made("second", seed=1).trainer.train()


def stop(trainers, first, step, **how):
    """The reason on record once the process has stopped at this step."""
    first.trainer.train()
    first.checkpoints.begins(0)
    first.train(step - 1)
    if "saves" not in how:
        trainers.stopping.requested = True
    with pytest.raises(StoppedError):
        first.train(1, **how)
    first.recorder.write_summary()
    return json.loads((first.recorder.folder / "summary.json").read_text())["reason"]


SAVED = "stopped by SIGTERM after step 4; its checkpoint is saved"
NOT_SAVED = "stopped by SIGTERM after step 4; no checkpoint of that step is kept"


@pytest.mark.parametrize("processes", [1, 2])
def test_a_stop_makes_a_checkpoint_of_its_step(trainers, processes):
    assert SAVED == stop(trainers, trainers.first_of(processes, "first"), 4)
    assert ["checkpoint-4"] == kept(trainers)


# Each of them makes a save a collective, which one process alone must not enter.
SHARDED = (
    {"accelerator": SimpleNamespace(distributed_type="FSDP")},
    {"accelerator": SimpleNamespace(distributed_type="DEEPSPEED")},
    {"accelerator": SimpleNamespace(distributed_type="MULTI_GPU", parallelism_config="tp")},
    {"is_fsdp_enabled": True},
    {"accelerator": None, "sharded_ddp": "zero_dp_3"},
    {"state": SimpleNamespace(best_global_step=2)},
)


@pytest.mark.parametrize("attributes", SHARDED, ids=str)
@pytest.mark.parametrize("saves", [False, True], ids=["between saves", "while its model is saved"])
def test_a_stop_of_a_sharded_trainer_makes_no_checkpoint_of_its_own(trainers, attributes, saves):
    first = trainers.first_of(2, "first")
    vars(first.trainer).update(attributes)
    how = {"saves": (4,), "alone": True, "stopping": trainers.stopping} if saves else {}

    assert NOT_SAVED == stop(trainers, first, 4, **how)
    # As the script asks, and as the other processes do.
    assert [(True, 1)] * saves == first.saved_with
    assert [] == kept(trainers)


def test_a_stop_that_comes_before_a_sharded_trainers_own_save_leaves_it_as_it_is(trainers):
    first = trainers.first_of(2, "first")
    first.trainer.is_fsdp_enabled = True
    first.trainer.train()
    first.checkpoints.begins(0)
    trainers.stopping.requested = True
    with pytest.raises(StoppedError):
        first.train(1, saves=(1,), alone=True)

    assert [(True, 1)] == first.saved_with


class Written:
    """A store in which these processes have said that they have written their part."""

    def __init__(self, *ranks):
        self._keys, self.seconds = {f"compilegate/here/saved/4/{rank}" for rank in ranks}, []

    def set(self, key, _value):
        self._keys.add(key)

    def wait(self, keys, within):
        self.seconds.append(within.total_seconds())
        if not self._keys.issuperset(keys):
            raise RuntimeError("timeout")

    def check(self, _keys):
        return False


@pytest.mark.parametrize(("others", "reason"), [((1,), SAVED), ((), NOT_SAVED)])
def test_a_stop_keeps_a_sharded_checkpoint_only_when_every_process_has_written_its_part(
    trainers, others, reason
):
    store = Written(*others)
    first = trainers.first_of(2, "first", store)
    first.trainer.is_fsdp_enabled = first.sharded = True

    assert reason == stop(trainers, first, 4, saves=(4,), stopping=trainers.stopping)
    assert (["checkpoint-4"] if others else []) == kept(trainers)
    assert all(seconds < STEP_SECONDS for seconds in store.seconds)  # the job is killed soon


def test_a_trainer_that_cannot_save_its_checkpoint_stops_all_the_same(trainers, capsys):
    first = trainers.made("first", seed=1)
    first.trainer._save_checkpoint = lambda model: None  # another release's signature
    how = {"saves": (4,), "alone": True, "stopping": trainers.stopping}

    assert NOT_SAVED == stop(trainers, first, 4, **how)
    assert "compilegate checkpoint=4 saved=no reason=TypeError(" in capsys.readouterr().out


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


@pytest.mark.training
@pytest.mark.slow
def test_a_trainers_script_goes_on_from_the_step_at_which_it_was_stopped(jobs, place):
    where, _ = place
    jobs.warm(*TRAINERS)
    # The Trainer saves its model alone after every step, so the stop comes while it does.
    long = {
        **TRAINER, "num_train_epochs": 40, "save_strategy": "steps", "save_steps": 1,
        "save_only_model": True,
    }  # fmt: skip
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
