"""What a stopped job leaves behind so that the next one goes on with it.

SageMaker copies the folder to S3 while the job runs, and back before a spot job goes on. A
checkpoint is a folder of its own, renamed into place when it is whole; a list of its files says
whether all of them have come back.
"""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import torch
from compilegate_runtime import environment
from compilegate_runtime.errors import StoppedError

PLACE = "/opt/ml/checkpoints"
LIST = "whole.json"
# SageMaker gives a job 120 seconds after SIGTERM; a step that takes longer than this is given up.
PATIENCE_SECONDS = 60


class Checkpoints:
    """Saves after so many minutes and when the job is told to stop; finds the newest one."""

    def __init__(self, recorder, rank, minutes):
        self._recorder, self._rank = recorder, rank
        place = Path(os.environ.get("COMPILEGATE_CHECKPOINT_DIR") or PLACE)
        self._folder = place / "progress" if place.is_dir() else None
        self._every = minutes * 60 if minutes else float("inf")
        self._saved = time.monotonic()
        self._told_to_stop = False
        if self._folder is not None:
            self._at_once = signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _signal, _frame):
        """Wait for the step's end; where that does not come, stop as other jobs do."""
        self._told_to_stop = True
        signal.signal(signal.SIGALRM, self._at_once)
        signal.alarm(PATIENCE_SECONDS)

    def newest(self, settings):
        """The newest whole checkpoint of a run with these settings, None where there is none.

        Its state, what the recorder goes on from, and the steps written so far.
        """
        found = sorted(self._folder.glob("step-*"), reverse=True) if self._folder else []
        for folder in filter(_is_whole, found):
            told = json.loads((folder / "run.json").read_text())
            if told["settings"] == settings:
                state = torch.load(str(folder / "state.pt"), map_location="cpu")
                return state, told["evidence"], folder / "steps.jsonl"
            print(f"{folder} is another run's checkpoint: not used", flush=True)
        return None

    def after_step(self, state, settings):
        """Save ``state()`` if it is time to; end the process if it was told to stop.

        The first process decides: the others go on until it has gone, so that no one waits in
        a step that others never reach.
        """
        last = self._recorder.steps_done == self._recorder.steps_planned
        if self._folder is None or self._rank or last:
            return
        if self._told_to_stop or time.monotonic() - self._saved >= self._every:
            self._save(state(), settings)
            self._saved = time.monotonic()
        if self._told_to_stop:
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
        sizes = {path.name: path.stat().st_size for path in fresh.iterdir()}
        (fresh / LIST).write_text(json.dumps(sizes))
        shutil.rmtree(self._folder / name, ignore_errors=True)
        fresh.rename(self._folder / name)
        for older in sorted(self._folder.glob("step-*"))[:-1]:
            shutil.rmtree(older)

    def done(self):
        """The run has all its steps: from here on a stop is at once again."""
        if self._folder is not None:
            signal.signal(signal.SIGTERM, self._at_once)
            if self._told_to_stop:
                self._at_once(signal.SIGTERM, None)


def _is_whole(folder):
    try:
        sizes = json.loads((folder / LIST).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
