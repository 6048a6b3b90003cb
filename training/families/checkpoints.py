"""What a stopped job saves so that the next one continues from it.

SageMaker copies the folder to S3 while the job runs, and back before a spot job continues. A
checkpoint is a folder of its own, renamed into place when it is whole; a list of its files says
whether all of them have come back.
"""

import inspect
import json
import shutil

import torch
from compilegate_runtime import environment
from compilegate_runtime.errors import StoppedError
from compilegate_runtime.saving import NEWEST_KEPT, SaveSchedule, is_whole, publish
from compilegate_runtime.signals import Stopping


class Checkpoints:
    """Saves every so many minutes and at SIGTERM; finds the newest checkpoint.

    Few jobs see SIGTERM: AWS's images do not pass it on to the script.
    """

    def __init__(self, recorder, rank, minutes):
        self._recorder, self._rank = recorder, rank
        place = environment.checkpoint_folder()
        self._folder = None if place is None else place / "progress"
        self._schedule = SaveSchedule(minutes)
        self._stopping = None if place is None else Stopping()

    def newest(self, settings):
        """The newest whole checkpoint of a run with these settings, None where there is none.

        Its state, what the recorder continues from, and the steps written so far.
        """
        folders = reversed(self._oldest_first()) if self._folder else []
        for folder in filter(is_whole, folders):
            run = json.loads((folder / "run.json").read_text())
            if run["settings"] == settings:
                return saved_state(folder / "state.pt"), run["evidence"], folder / "steps.jsonl"
            print(f"{folder} is another run's checkpoint: not used", flush=True)
        return None

    def after_step(self, state, settings):
        """Save ``state()`` if a save is due; end the process after SIGTERM.

        The first process decides: the others continue until it has ended, so that none waits in
        a step that others never reach.
        """
        last = self._recorder.steps_done == self._recorder.steps_planned
        if self._folder is None or self._rank or last:
            return
        if self._stopping.requested or self._schedule.due():
            with self._schedule.saving():
                self._save(state(), settings)
        if self._stopping.requested:
            step = self._recorder.steps_done
            self._recorder.fail(f"stopped by SIGTERM after step {step}; its checkpoint is saved")
            raise StoppedError

    def _save(self, state, settings):
        evidence = self._recorder.state()
        name = "step-{:09d}".format(evidence["steps"])
        fresh = self._folder / (name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        torch.save(state, fresh / "state.pt")
        (fresh / "run.json").write_text(json.dumps({"settings": settings, "evidence": evidence}))
        shutil.copyfile(environment.evidence_folder() / "steps.jsonl", fresh / "steps.jsonl")
        publish(fresh, self._folder / name)
        unfinished = self._folder.glob("step-*.new")  # of a process that was killed
        for folder in [*self._oldest_first()[:-NEWEST_KEPT], *unfinished]:
            shutil.rmtree(folder)

    def _oldest_first(self):
        return sorted(self._folder.glob("step-*[0-9]"))

    def done(self):
        """The run has all its steps: from here on SIGTERM stops the process at once."""
        if self._stopping is not None:
            self._stopping.restore()


def saved_state(file):
    """The state in a file: tensors and plain values, whatever else it would make when unpickled."""
    # An argument of PyTorch 1.13 and later.
    parameters = inspect.signature(torch.load).parameters
    limits = {"weights_only": True} if "weights_only" in parameters else {}
    return torch.load(str(file), map_location="cpu", **limits)
