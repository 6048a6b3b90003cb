"""Whole checkpoints of a run, kept in the job's checkpoint folder for the process that goes on."""

import json
import shutil

from compilegate_runtime.whole_folders import NEWEST_KEPT, is_whole, publish

RUN = "compilegate_run.json"  # the settings of the run that saved a checkpoint


class SavedProgress:
    """The newest checkpoints of one run, each in a folder of its own, ``checkpoint-STEP``."""

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
