"""The evidence that belongs to a script's checkpoints, kept beside them for the next process.

SageMaker copies the checkpoint folder to S3 while a job runs, and back before a spot job goes on.
The steps are kept once; what a checkpoint has of its own is how far they had come.
"""

import json
import shutil

from compilegate_runtime import environment

STEPS, BEGUN = "steps.jsonl", "begun"
STATES_KEPT = 20


class KeptEvidence:
    """Keeps a run's evidence under the key of each checkpoint, and goes on with it.

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
        """The checkpoint ``key`` is complete, and the evidence as it is belongs to it."""
        if not self._first:
            return
        state, lines = self._recorder.state(), self._recorder.folder / STEPS
        self._put(STEPS, lambda fresh: shutil.copyfile(lines, fresh))
        for path in self._of(key):  # of a checkpoint that was written over
            path.unlink()
        told = json.dumps({"settings": self.settings, "evidence": state})
        name = "{:09d}-{}.json".format(state["steps"], key)
        self._put(name, lambda fresh: fresh.write_text(told))
        for path in self._of("*")[:-STATES_KEPT]:
            path.unlink()

    def go_on(self, key, steps=None):
        """The script goes on from the checkpoint ``key``, and its evidence with it.

        Where that is lost, it begins after ``steps`` steps, None if nobody knows how many.
        """
        if not self._recorder.steps_done and not self._resume(key):
            self._recorder.begin_after(steps)

    def _resume(self, key):
        found = self._of(key)
        if not found:
            return False
        told, steps = json.loads(found[-1].read_text()), self._folder / STEPS
        evidence = told["evidence"]
        whole = steps.is_file() and steps.stat().st_size >= evidence["files"]["size"]
        if told["settings"] != self.settings or not whole:
            return False
        self._recorder.resume(evidence, steps)
        for later in self._of("*"):  # of steps that are taken anew
            if self._first and later.name > found[-1].name:
                later.unlink()
        return True

    def _of(self, key):
        return sorted(self._folder.glob(f"?????????-{key}.json"))

    def _put(self, name, write):
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / (name + ".new")
        write(fresh)
        fresh.replace(self._folder / name)
