"""What a run keeps in the job's checkpoint folder for the process that continues it.

SageMaker copies that folder to S3 while a job runs, and back before a spot job continues. Whole
checkpoints lie in it, and the evidence that belongs to each: the steps are kept once, with how many
of them each checkpoint had seen.
"""

import functools
import json
import os
import shutil
from pathlib import Path

from compilegate_runtime import environment
from compilegate_runtime.fingerprint import file_digest
from compilegate_runtime.saving import NEWEST_KEPT, is_whole, publish

STEPS, BEGUN = "steps.jsonl", "begun"
STATES_KEPT = 20
KEY_LENGTH = 16
RUN = "compilegate_run.json"  # the settings of the run that saved a checkpoint


class KeptEvidence:
    """Keeps a run's evidence under the key of each checkpoint, and continues it.

    ``settings`` are the run's, as JSON has them; ``begun_before``: whether an earlier process of
    the job has begun to train.
    """

    def __init__(self, recorder, folder, settings):
        self._recorder, self._folder = recorder, folder / "evidence"
        self.settings = json.loads(json.dumps(settings, default=str))
        self._first = environment.rank() == 0
        self.begun_before = (self._folder / BEGUN).exists()

    def begin(self):
        """This process trains from here on."""
        if self._first:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / BEGUN).touch()

    def keep(self, key):
        """Keep the evidence so far as that of the complete checkpoint ``key``."""
        if not self._first:
            return
        state, lines = self._recorder.state(), self._recorder.folder / STEPS
        self._put(STEPS, lambda fresh: shutil.copyfile(lines, fresh))
        for path in self._states(key):  # of a checkpoint that was overwritten
            path.unlink()
        text = json.dumps({"settings": self.settings, "evidence": state})
        name = "{:09d}-{}.json".format(state["steps"], key)
        self._put(name, lambda fresh: fresh.write_text(text))
        for path in self._states("*")[:-STATES_KEPT]:
            path.unlink()

    def resume(self, key, steps=None):
        """Continue the evidence of the checkpoint ``key``, from which the script continues.

        Where that is lost, evidence begins after ``steps`` steps, None if the number is unknown.
        """
        if not self._recorder.steps_done and not self._restore(key):
            self._recorder.begin_after(steps)

    def _restore(self, key):
        states = self._states(key)
        if not states:
            return False
        state, steps = json.loads(states[-1].read_text()), self._folder / STEPS
        evidence = state["evidence"]
        complete = steps.is_file() and steps.stat().st_size >= evidence["files"]["size"]
        if state["settings"] != self.settings or not complete:
            return False
        self._recorder.resume(evidence, steps)
        for later in self._states("*"):  # of steps that are repeated
            if self._first and later.name > states[-1].name:
                later.unlink()
        return True

    def _states(self, key):
        return sorted(self._folder.glob(f"?????????-{key}.json"))

    def _put(self, name, write):
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / (name + ".new")
        write(fresh)
        fresh.replace(self._folder / name)


class SavedProgress:
    """The newest whole checkpoints of one run, each in a folder of its own, ``checkpoint-STEP``."""

    def __init__(self, folder, settings):
        self._folder, self._settings = folder, settings

    def newest(self):
        """The newest whole checkpoint of a run with the same settings, None without one."""
        return next(filter(self._fits, self._newest_first()), None)

    def add(self, step, write):
        """Keep what ``write(folder)`` puts into an empty folder."""
        fresh = self.fresh(step)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        write(fresh)
        (fresh / RUN).write_text(json.dumps(self._settings))
        publish(fresh, self._folder / f"checkpoint-{step}")
        for older in self._newest_first()[NEWEST_KEPT:]:
            shutil.rmtree(older)

    def fresh(self, step):
        """Where a checkpoint lies until it is whole."""
        return self._folder / f"checkpoint-{step}.new"

    def _fits(self, folder):
        run = folder / RUN
        return is_whole(folder) and run.is_file() and json.loads(run.read_text()) == self._settings

    def _newest_first(self):
        return sorted(self._folder.glob("checkpoint-*"), key=_step_of, reverse=True)


def _step_of(folder):
    number = folder.name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


class OwnCheckpoints:
    """What a script without a Trainer saves and loads itself, in the checkpoint folder.

    Its evidence continues where it loads an optimizer's state from a checkpoint that an earlier
    process of the job saved.
    """

    def __init__(self, torch, recorder, kept, place):
        self._torch, self._recorder, self._kept, self._place = torch, recorder, kept, place
        self._loaded = None  # the key of what was loaded last

    def install(self):
        """Watch torch.save, torch.load and the loading of optimizers."""
        torch, optimizer = self._torch, self._torch.optim.Optimizer
        torch.save = self._saving(torch.save)
        torch.load = self._loading(torch.load)
        optimizer.load_state_dict = self._restoring(optimizer.load_state_dict)

    def _saving(self, original):
        @functools.wraps(original)
        def save(obj, f, *args, **kwargs):
            result = original(obj, f, *args, **kwargs)
            if self._recorder.steps_done and self._is_here(f) and _has_optimizer(obj):
                self._kept.keep(_key(f))
            return result

        return save

    def _loading(self, original):
        @functools.wraps(original)
        def load(f, *args, **kwargs):
            result = original(f, *args, **kwargs)
            if not self._recorder.steps_done and self._is_here(f) and _has_optimizer(result):
                self._loaded = _key(f)
            return result

        return load

    def _restoring(self, original):
        @functools.wraps(original)
        def load_state_dict(optimizer, *args, **kwargs):
            key, self._loaded = self._loaded, None
            if key:
                self._kept.resume(key)
            return original(optimizer, *args, **kwargs)

        return load_state_dict

    def _is_here(self, file):
        return isinstance(file, (str, os.PathLike)) and self._place in Path(file).resolve().parents


def _has_optimizer(saved):
    """Whether it holds an optimizer's state, without which training cannot continue."""
    if not isinstance(saved, dict):
        return False
    values = [saved, *saved.values()]
    values += [one for value in saved.values() if isinstance(value, (list, tuple)) for one in value]
    return any(isinstance(value, dict) and "param_groups" in value for value in values)


def _key(file):
    """A digest of the file, which a renamed copy shares."""
    return file_digest(Path(file))[:KEY_LENGTH]
