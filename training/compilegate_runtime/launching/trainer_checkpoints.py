"""Lets a Trainer save every few minutes and continue where an earlier process stopped.

Hugging Face's and Lightning's Trainers save and load whole checkpoints themselves. Those that are
saved because one is due are kept in the job's checkpoint folder, with the evidence so far.
"""

import datetime
import functools
import inspect
import json
import os
import shutil
import time
from pathlib import Path

from compilegate_runtime.errors import StoppedError
from compilegate_runtime.launching.checkpoints import SavedProgress
from compilegate_runtime.launching.trainer_alone import saves_alone
from compilegate_runtime.progress import write_line
from compilegate_runtime.signals import STEP_SECONDS, Stopping

EVIDENCE = "compilegate_evidence"  # in the mapping that Lightning saves
LIGHTNING_FILE = "trainer.ckpt"
# How long a stop waits for the other processes' parts: the other half is for keeping them.
PARTS_WITHIN = datetime.timedelta(seconds=STEP_SECONDS / 2)


class _Checkpoints:
    """Checkpoints of a run in the folder ``place``.

    ``saves`` (AgreedSaves) says when one is due; ``ranks`` are the job's processes.
    """

    def __init__(self, recorder, kept, place, saves, ranks):
        self._recorder, self._kept = recorder, kept
        self._saves, self._ranks = saves, ranks
        self._progress = SavedProgress(place / "progress", kept.settings)

    def _newest(self):
        """The checkpoint to continue from, None once this process has taken a step."""
        return None if self._recorder.steps_done else self._progress.newest()


class LightningCheckpoints(_Checkpoints):
    """A Lightning Trainer's checkpoints, each with the key of the evidence that belongs to it."""

    _step = 0

    def install(self, trainer):
        """Let every Trainer continue from the newest checkpoint unless the script names one."""
        original = trainer.fit
        signature = inspect.signature(original)
        if "ckpt_path" not in signature.parameters:  # before 1.5
            return

        @functools.wraps(original)
        def fit(instance, *args, **kwargs):
            bound, newest = signature.bind(instance, *args, **kwargs), self._newest()
            if newest and bound.arguments.get("ckpt_path") is None:
                bound.arguments["ckpt_path"] = str(newest / LIGHTNING_FILE)
            return original(*bound.args, **bound.kwargs)

        trainer.fit = fit

    def begins(self, step):
        """Training begins, after ``step`` steps of an earlier process."""
        self._step = step
        self._saves.begin(step)

    def batch_ended(self, trainer):
        """Save if the batch was the last of a step and a save is due."""
        step = trainer.global_step
        if step == self._step or not self._recorder.steps_done:
            return
        self._step = step
        if not self._saves.due(step):
            return
        with self._saves.schedule.saving():
            if self._ranks.rank:  # its part of what the processes save together
                trainer.save_checkpoint(str(self._progress.fresh(step) / LIGHTNING_FILE))
            else:
                self._progress.add(
                    step, lambda fresh: trainer.save_checkpoint(str(fresh / LIGHTNING_FILE))
                )

    def saving(self, checkpoint):
        """Lightning is about to save this."""
        if self._recorder.steps_done:
            checkpoint[EVIDENCE] = key = f"step-{self._recorder.steps_done}"
            self._kept.keep(key)

    def loaded(self, checkpoint):
        """Lightning has read this."""
        if EVIDENCE in checkpoint:
            self._kept.resume(checkpoint[EVIDENCE])


class TrainerCheckpoints(_Checkpoints):
    """A Hugging Face Trainer's checkpoints: every one that it saves is kept."""

    _trainer = None  # the one that trains
    _stopping = None
    _replaced = None  # the Trainer's arguments that a save of ours has changed
    _ours, _began = False, 0.0

    def install(self, trainer):
        """Let every Trainer continue from the newest checkpoint unless the script names one."""
        original = trainer.train

        @functools.wraps(original)
        def train(instance, resume_from_checkpoint=None, *args, **kwargs):
            self._trainer, newest = instance, self._newest()
            if newest and not resume_from_checkpoint:
                resume_from_checkpoint = str(newest)
            return original(instance, resume_from_checkpoint, *args, **kwargs)

        trainer.train = train

    def begins(self, step):
        """Training begins, after ``step`` steps of an earlier process."""
        if step:
            self._kept.resume(f"step-{step}", step)
        self._stopping = Stopping()
        self._saves.begin(step)

    def step_ended(self, args, state, control):
        """Ask the Trainer for a checkpoint if one is due; every process calls this."""
        due, stops = self._saves.due(state.global_step), self._stops_here()
        alone = stops and not due  # the other processes do not know of it
        if alone and not self._saves_alone():
            if control.should_save:
                return  # as every process does; it ends with this one's stop
            self._stop(saved=False)
        if not (due or stops):
            return
        self._ours = not control.should_save
        # The next process needs the optimizer's state, and the script its own older checkpoints.
        changes = {"save_only_model": False, **({"save_total_limit": None} if self._ours else {})}
        self._replaced = {name: getattr(args, name, None) for name in changes}
        _set(args, changes)
        control.should_save = True
        self._began = time.monotonic()

    def evaluated(self):
        """An evaluation is over; its time is not part of a save."""
        self._began = time.monotonic()

    def saved(self, args, state):
        """The Trainer has written a checkpoint; end the process after SIGTERM."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        began, ours = (self._began, self._ours) if self._replaced else (time.monotonic(), False)
        if self._replaced:
            _set(args, self._replaced)
        self._replaced, self._ours = None, False
        stops, kept = self._stops_here(), False
        if stops and not _can_continue(folder) and self._saves_alone():
            # SIGTERM came when the Trainer had begun to save its model alone.
            _set(args, {"save_only_model": False})
            self._save_again(state.global_step)
        complete = self._is_complete(folder, state.global_step, stops=stops)
        if not self._ranks.rank:
            kept = self._keep(folder, state.global_step, complete)
            if ours and str(folder) != str(state.best_model_checkpoint):
                shutil.rmtree(folder, ignore_errors=True)  # the script did not ask for it
            self._saves.schedule.saved(time.monotonic() - began)
        if stops:
            self._stop(saved=kept)

    def ends(self):
        """Training is over: from here on SIGTERM stops the process at once."""
        if self._stopping is not None:
            self._stopping.restore()

    def _stops_here(self):
        """Whether SIGTERM came and this is the first process, whose checkpoint counts for all."""
        return self._stopping is not None and self._stopping.requested and not self._ranks.rank

    def _saves_alone(self):
        return saves_alone(self._trainer, self._ranks.count)

    def _is_complete(self, folder, step, *, stops):
        """Whether every process has written its part; each of them says so here."""
        if not stops:
            return self._ranks.all_here(f"saved/{step}")
        # The others do not know of a save that is this process's own, which has no other parts.
        return not _is_sharded(folder) or self._ranks.all_here(f"saved/{step}", PARTS_WITHIN)

    def _save_again(self, step):
        """Save with the optimizer's state; the stop does not depend on this private method."""
        try:
            self._trainer._save_checkpoint(self._trainer.model_wrapped, None)
        except Exception as error:  # noqa: BLE001 — the stop goes on
            write_line(f"compilegate checkpoint={step} saved=no reason={error!r}")

    def _stop(self, *, saved):
        what = "its checkpoint is saved" if saved else "no checkpoint of that step is kept"
        done = self._recorder.steps_done
        self._recorder.fail(f"stopped by SIGTERM after step {done}; {what}")
        raise StoppedError

    def _keep(self, folder, step, complete):
        """Keep a checkpoint that an optimizer's state belongs to; whether that is done."""
        if not (folder.is_dir() and _can_continue(folder)):
            return False
        sharded = _is_sharded(folder)
        if sharded and not complete:
            write_line(f"compilegate checkpoint={step} kept=no reason=a_process_did_not_finish_it")
            return False
        if sharded and len(json.loads(os.environ.get("SM_HOSTS", "[]"))) > 1:
            write_line(f"compilegate checkpoint={step} kept=no reason=parts_on_other_machines")
            return False
        # The evidence first: a job killed in between continues from the one before.
        self._kept.keep(f"step-{step}")
        self._progress.add(
            step,
            lambda fresh: shutil.copytree(
                folder, fresh, copy_function=_link_or_copy, dirs_exist_ok=True
            ),
        )
        return True


def _set(args, values):
    for name, value in values.items():
        setattr(args, name, value)


def _can_continue(folder):
    """Whether a Trainer's checkpoint has an optimizer's state: its own, FSDP's or DeepSpeed's.

    There is none with ``save_only_model``.
    """
    return _is_sharded(folder) or next(folder.glob("optimizer*"), None) is not None


def _is_sharded(folder):
    """Whether each process wrote a part of the optimizer's state: FSDP or DeepSpeed."""
    shards = [*folder.glob("global_step*"), *folder.glob("optimizer*")]
    return any(path.is_dir() for path in shards)


def _link_or_copy(source, target):
    """A second name for a file where the folders share a disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
