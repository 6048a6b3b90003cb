"""Lets a script's own checkpoints carry a stopped job on, and its evidence with them.

A Hugging Face Trainer saves and loads whole checkpoints by itself: they are kept in the job's
checkpoint folder, one more is saved when the job is told to stop, and the next process trains on
from the newest. Any other script has to save and load its own: its evidence goes on where it
loads an optimizer's state from a checkpoint that an earlier process of the job saved.
"""

import functools
import json
import os
import shutil
from pathlib import Path

from compilegate_runtime import environment
from compilegate_runtime.errors import StoppedError
from compilegate_runtime.fingerprint import file_digest
from compilegate_runtime.signals import Stopping
from compilegate_runtime.whole_folders import is_whole, publish

KEY_LENGTH = 16
RUN = "compilegate_run.json"  # the settings of the run that saved a Trainer's checkpoint
LIGHTNINGS_KEY = "compilegate_evidence"  # in the mapping that Lightning saves


class OwnCheckpoints:
    """What a script saves and loads by torch.save and torch.load, in the checkpoint folder."""

    def __init__(self, torch, recorder, kept, place):
        self._torch, self._recorder, self._kept, self._place = torch, recorder, kept, place
        self._loaded = None  # the key of what was loaded last

    def install(self):
        """Watch torch.save, torch.load and the loading of optimizers."""
        torch = self._torch
        torch.save = self._saving(torch.save)
        torch.load = self._loading(torch.load)
        optimizer = torch.optim.Optimizer
        optimizer.load_state_dict = self._restoring(optimizer.load_state_dict)

    def _saving(self, original):
        @functools.wraps(original)
        def save(obj, f, *args, **kwargs):
            result = original(obj, f, *args, **kwargs)
            if self._recorder.steps_done and self._is_here(f) and _holds_optimizer(obj):
                self._kept.keep(_key(f))
            return result

        return save

    def _loading(self, original):
        @functools.wraps(original)
        def load(f, *args, **kwargs):
            result = original(f, *args, **kwargs)
            if not self._recorder.steps_done and self._is_here(f) and _holds_optimizer(result):
                self._loaded = _key(f)
            return result

        return load

    def _restoring(self, original):
        @functools.wraps(original)
        def load_state_dict(optimizer, *args, **kwargs):
            key, self._loaded = self._loaded, None
            if key:
                self._kept.go_on(key)
            return original(optimizer, *args, **kwargs)

        return load_state_dict

    def _is_here(self, file):
        return isinstance(file, (str, os.PathLike)) and self._place in Path(file).resolve().parents


def _holds_optimizer(saved):
    """Whether there is an optimizer's state in it: training can go on from nothing less."""
    if not isinstance(saved, dict):
        return False
    values = [saved, *saved.values()]
    values += [one for value in saved.values() if isinstance(value, (list, tuple)) for one in value]
    return any(isinstance(value, dict) and "param_groups" in value for value in values)


def _key(file):
    """What the file holds, whatever it is called by now."""
    return file_digest(Path(file))[:KEY_LENGTH]


class LightningCheckpoints:
    """Lightning's checkpoints, wherever it saves them: each is told which evidence is its own."""

    def __init__(self, recorder, kept):
        self._recorder, self._kept = recorder, kept

    def saving(self, checkpoint):
        """Lightning is about to save this."""
        if self._recorder.steps_done:
            checkpoint[LIGHTNINGS_KEY] = key = f"step-{self._recorder.steps_done}"
            self._kept.keep(key)

    def loaded(self, checkpoint):
        """Lightning has read this."""
        if LIGHTNINGS_KEY in checkpoint:
            self._kept.go_on(checkpoint[LIGHTNINGS_KEY])


class TrainerCheckpoints:
    """A Trainer's checkpoints, kept whole in the job's checkpoint folder."""

    def __init__(self, recorder, kept, place):
        self._recorder, self._kept, self._folder = recorder, kept, place / "progress"
        self._stopping = None

    def install(self, trainer):
        """Let every Trainer train on from the newest checkpoint, unless it is told another one."""
        original = trainer.train

        @functools.wraps(original)
        def train(this, resume_from_checkpoint=None, *args, **kwargs):
            newest = None if self._recorder.steps_done else self._newest()
            chosen = resume_from_checkpoint or (newest and str(newest))
            return original(this, chosen or resume_from_checkpoint, *args, **kwargs)

        trainer.train = train

    def _newest(self):
        found = sorted(self._folder.glob("checkpoint-*"), key=_step_of, reverse=True)
        fit = (one for one in found if is_whole(one) and self._is_this_runs(one))
        return next(filter(_can_go_on, fit), None)

    def _is_this_runs(self, folder):
        """Whether a run of the same settings saved it."""
        known = folder / RUN
        return known.is_file() and json.loads(known.read_text()) == self._kept.settings

    def begins(self, step):
        """Training begins, after ``step`` steps of an earlier process."""
        if step:
            self._kept.go_on(f"step-{step}", step)
        self._stopping = Stopping()

    def wants_one_now(self):
        """Whether the job was told to stop; the first process's checkpoint speaks for all."""
        return self._stopping is not None and self._stopping.told and not environment.rank()

    def saved(self, folder, step):
        """The Trainer has left a checkpoint in ``folder``; end the process if it was told to."""
        if environment.rank():
            return
        if folder.is_dir() and _can_go_on(folder):
            name = f"checkpoint-{step}"
            fresh = self._folder / (name + ".new")
            shutil.rmtree(fresh, ignore_errors=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder, fresh, copy_function=_link_or_copy)
            (fresh / RUN).write_text(json.dumps(self._kept.settings))
            publish(fresh, self._folder / name)
            self._kept.keep(f"step-{step}")
            for older in self._folder.glob("checkpoint-*"):
                if older.name != name:
                    shutil.rmtree(older)
        if self.wants_one_now():
            done = self._recorder.steps_done
            self._recorder.fail(f"stopped by SIGTERM after step {done}; its checkpoint is saved")
            raise StoppedError

    def ends(self):
        """Training is over: from here on a stop is at once again."""
        if self._stopping is not None:
            self._stopping.at_once_again()


def _can_go_on(folder):
    """Whether a Trainer's checkpoint has an optimizer's state: its own, FSDP's or DeepSpeed's.

    There is none with ``save_only_model``.
    """
    return any(next(folder.glob(name), None) for name in ("optimizer*", "global_step*"))


def _step_of(folder):
    number = folder.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _link_or_copy(source, target):
    """A second name for a file where the folders share a disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
