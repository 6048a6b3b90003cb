"""Lets a Hugging Face Trainer save every few minutes and train on where an earlier process was.

A Trainer saves and loads whole checkpoints by itself. Each that it saves, by its own settings or
because it is time to, is kept in the job's checkpoint folder with the evidence so far.
"""

import functools
import json
import os
import shutil
import time
from pathlib import Path

from compilegate_runtime.errors import StoppedError
from compilegate_runtime.launching.saved_progress import SavedProgress
from compilegate_runtime.progress import write_line
from compilegate_runtime.signals import Stopping


class TrainerCheckpoints:
    """A Trainer's checkpoints, kept whole in the folder ``place``.

    ``saves`` (AgreedSaves) says when one is due; ``ranks`` are the job's processes.
    """

    def __init__(self, recorder, kept, place, saves, ranks):
        self._recorder, self._kept = recorder, kept
        self._saves, self._ranks = saves, ranks
        self._progress = SavedProgress(place / "progress", kept.settings)
        self._stopping = None
        self._asked = None  # what was changed in the Trainer's arguments for a save of ours
        self._ours, self._began = False, 0.0

    def install(self, trainer):
        """Let every Trainer train on from the newest checkpoint, unless it is told another one."""
        original = trainer.train

        @functools.wraps(original)
        def train(this, resume_from_checkpoint=None, *args, **kwargs):
            newest = None if self._recorder.steps_done else self._progress.newest()
            chosen = resume_from_checkpoint or (newest and str(newest))
            return original(this, chosen or resume_from_checkpoint, *args, **kwargs)

        trainer.train = train

    def begins(self, step):
        """Training begins, after ``step`` steps of an earlier process."""
        if step:
            self._kept.go_on(f"step-{step}", step)
        self._stopping = Stopping()
        self._saves.begin(step)

    def step_ended(self, args, state, control):
        """Ask the Trainer for a checkpoint if it is time for one; to be called in every process."""
        due = self._saves.due(state.global_step)
        if not (due or self._stops_here()):
            return
        self._ours = not control.should_save
        # The next process needs the optimizer's state, and the script its own older checkpoints.
        changes = {"save_only_model": False, **({"save_total_limit": None} if self._ours else {})}
        self._asked = {name: getattr(args, name, None) for name in changes}
        _set(args, changes)
        control.should_save = True
        self._began = time.monotonic()

    def evaluated(self):
        """An evaluation is over; the time it took is not that of a save."""
        self._began = time.monotonic()

    def saved(self, args, state):
        """The Trainer has left a checkpoint; end the process if it was told to stop."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        began, ours = (self._began, self._ours) if self._asked else (time.monotonic(), False)
        if self._asked:
            _set(args, self._asked)
        self._asked, self._ours = None, False
        stops = self._stops_here()
        complete = stops or self._ranks.all_here(f"saved/{state.global_step}")
        if not self._ranks.rank:
            self._keep(folder, state.global_step, complete)
            if ours and str(folder) != str(state.best_model_checkpoint):
                shutil.rmtree(folder, ignore_errors=True)  # the script did not ask for it
            self._saves.schedule.saved(time.monotonic() - began)
        if stops:
            done = self._recorder.steps_done
            self._recorder.fail(f"stopped by SIGTERM after step {done}; its checkpoint is saved")
            raise StoppedError

    def ends(self):
        """Training is over: from here on a stop is at once again."""
        if self._stopping is not None:
            self._stopping.at_once_again()

    def _stops_here(self):
        """Whether the job was told to stop; the first process's checkpoint speaks for all."""
        return self._stopping is not None and self._stopping.told and not self._ranks.rank

    def _keep(self, folder, step, complete):
        if not (folder.is_dir() and _can_go_on(folder)):
            return
        sharded = _is_sharded(folder)
        if sharded and not complete:
            write_line(f"compilegate checkpoint={step} kept=no reason=a_process_did_not_finish_it")
            return
        if sharded and len(json.loads(os.environ.get("SM_HOSTS", "[]"))) > 1:
            write_line(f"compilegate checkpoint={step} kept=no reason=parts_on_other_machines")
            return
        # The evidence first: a job killed in between goes on from the checkpoint before this one.
        self._kept.keep(f"step-{step}")
        self._progress.add(step, lambda fresh: _link_all(folder, fresh))


def _set(args, values):
    for name, value in values.items():
        setattr(args, name, value)


def _can_go_on(folder):
    """Whether a Trainer's checkpoint has an optimizer's state: its own, FSDP's or DeepSpeed's.

    There is none with ``save_only_model``.
    """
    return _is_sharded(folder) or next(folder.glob("optimizer*"), None) is not None


def _is_sharded(folder):
    """Whether each process wrote a part of the optimizer's state: FSDP or DeepSpeed."""
    shards = [*folder.glob("global_step*"), *folder.glob("optimizer*")]
    return any(path.is_dir() for path in shards)


def _link_all(folder, fresh):
    shutil.copytree(folder, fresh, copy_function=_link_or_copy, dirs_exist_ok=True)


def _link_or_copy(source, target):
    """A second name for a file where the folders share a disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
