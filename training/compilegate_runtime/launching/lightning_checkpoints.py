"""Lets a Lightning Trainer save every few minutes and train on where an earlier process was.

Lightning's checkpoints say which step of a run they are of. Each one, whoever asked for it and
wherever it lies, is told which evidence is its own; those that are saved because it is time to are
kept in the job's checkpoint folder.
"""

import functools
import inspect

from compilegate_runtime.launching.saved_progress import SavedProgress

EVIDENCE = "compilegate_evidence"  # in the mapping that Lightning saves
FILE = "trainer.ckpt"


class LightningCheckpoints:
    """A Lightning Trainer's checkpoints; ``saves`` (AgreedSaves) says when one is due."""

    def __init__(self, recorder, kept, place, saves, ranks):
        self._recorder, self._kept = recorder, kept
        self._saves, self._ranks = saves, ranks
        self._progress = SavedProgress(place / "progress", kept.settings)
        self._step = 0

    def install(self, trainer):
        """Let every Trainer fit on from the newest checkpoint, unless it is told another one."""
        original = trainer.fit
        signature = inspect.signature(original)
        if "ckpt_path" not in signature.parameters:  # before 1.5
            return

        @functools.wraps(original)
        def fit(this, *args, **kwargs):
            bound = signature.bind(this, *args, **kwargs)
            newest = None if self._recorder.steps_done else self._progress.newest()
            if newest and bound.arguments.get("ckpt_path") is None:
                bound.arguments["ckpt_path"] = str(newest / FILE)
            return original(*bound.args, **bound.kwargs)

        trainer.fit = fit

    def begins(self, step):
        """Training begins, after ``step`` steps of an earlier process."""
        self._step = step
        self._saves.begin(step)

    def batch_ended(self, trainer):
        """Save if the batch was the last of a step and it is time to."""
        step = trainer.global_step
        if step == self._step or not self._recorder.steps_done:
            return
        self._step = step
        if not self._saves.due(step):
            return
        with self._saves.schedule.saving():
            if self._ranks.rank:  # its part of what the processes do together
                trainer.save_checkpoint(str(self._progress.fresh(step) / FILE))
            else:
                self._progress.add(step, lambda fresh: trainer.save_checkpoint(str(fresh / FILE)))

    def saving(self, checkpoint):
        """Lightning is about to save this."""
        if self._recorder.steps_done:
            checkpoint[EVIDENCE] = key = f"step-{self._recorder.steps_done}"
            self._kept.keep(key)

    def loaded(self, checkpoint):
        """Lightning has read this."""
        if EVIDENCE in checkpoint:
            self._kept.go_on(checkpoint[EVIDENCE])
