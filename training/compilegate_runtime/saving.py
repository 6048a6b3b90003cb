"""When a run saves, and folders that another process may see half written or half copied.

A run saves every few minutes, for at most a small share of its time. Saving by time and not by
steps lengthens the runs of all arms by the same share, so the ratio of two arms' times stays as it
is; a save after every so many steps would cost a fast arm the larger share of its run.
"""

import contextlib
import json
import math
import shutil
import time

EVERY_MINUTES = 5.0
# Of the run's time. Of a checkpoint that takes C seconds, a job that is interrupted once in M
# seconds loses least when it saves every sqrt(2 C M) seconds (J. W. Young, CACM 17(9), 1974): for
# one interruption a day and C = 35 s that is every 41 minutes, or 1.4 %.
LARGEST_SHARE = 0.02
# Checkpoints of a run that stay. SageMaker copies a folder to S3 file by file, and deletes there
# what was deleted here: the newest may be in S3 in part when a job is killed.
NEWEST_KEPT = 2
WHOLE = "whole.json"  # lists the files of a folder with their sizes


class SaveSchedule:
    """Says when the next save is due; ``minutes`` of 0 means never.

    The first save's cost is unknown; each one after it waits until the last one took no more than
    LARGEST_SHARE of the time since.
    """

    def __init__(self, minutes=EVERY_MINUTES, clock=time.monotonic):
        self.every_seconds = minutes * 60 if minutes else math.inf
        self._clock = clock
        self._next = clock() + self.every_seconds

    def due(self):
        """Whether it is time to save."""
        return self.seconds_left() <= 0

    def seconds_left(self):
        """Until the next save is due."""
        return self._next - self._clock()

    def saved(self, seconds=0.0):
        """A save has just ended that took ``seconds``."""
        self._next = self._clock() + max(self.every_seconds, seconds / LARGEST_SHARE)

    @contextlib.contextmanager
    def saving(self):
        """Time a save."""
        begin = self._clock()
        yield
        self.saved(self._clock() - begin)


class AgreedSaves:
    """Says after which steps to save, the same ones in every process of the job.

    Where saving is the work of all processes together, one that saved by its own clock would wait
    for the others endlessly. So they meet after a step that the first process has named before:
    there it decides whether to save, and after which step they meet again. A single process checks
    its schedule after every step. Decisions go through ``ranks``; without a store there, nothing
    is saved by time.
    """

    FIRST_MEETING = 10  # steps

    def __init__(self, schedule, ranks, clock=time.monotonic):
        self.schedule = schedule
        self._ranks, self._clock = ranks, clock
        self.begin(0)

    def begin(self, step):
        """Training begins, after ``step`` steps of an earlier process."""
        self._began, self._first = self._clock(), step
        self._meeting = step + self.FIRST_MEETING

    def due(self, step):
        """Whether every process saves after this step; to be called after each one."""
        if self._ranks.count == 1:
            return self.schedule.due()
        if step < self._meeting:
            return False
        decision = self._ranks.decided(f"save/{step}", lambda: self._decide(step))
        if decision is None:
            return False
        self._meeting = decision["next"]
        return decision["save"]

    def _decide(self, step):
        save = self.schedule.due()
        return {"save": save, "next": step + self._steps_until_due(step, save)}

    def _steps_until_due(self, step, save):
        """An estimate from the steps so far; at most as many, since later ones may be slower."""
        taken = step - self._first
        seconds_per_step = (self._clock() - self._began) / taken
        left = self.schedule.every_seconds if save else self.schedule.seconds_left()
        if left >= taken * seconds_per_step:
            return taken
        return max(1, math.ceil(left / seconds_per_step))


def publish(fresh, place):
    """Give the complete folder ``fresh`` its name, with a list of its files."""
    sizes = {
        path.relative_to(fresh).as_posix(): path.stat().st_size
        for path in fresh.rglob("*")
        if path.is_file()
    }
    (fresh / WHOLE).write_text(json.dumps(sizes))
    shutil.rmtree(place, ignore_errors=True)
    fresh.rename(place)


def is_whole(folder):
    """Whether all files of the list are there."""
    try:
        sizes = json.loads((folder / WHOLE).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
