"""What ``compilegate drain`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compilegate.cli.common.output import emit_json, say, say_line
from compilegate.domain.draining import DrainMark, DrainSteps, Work
from compilegate.domain.utc import iso, minute

MOST_NAMES = 20


@dataclass
class Report:
    """What a drain has seen and done so far; the lists name executions, jobs and workloads.

    ``enabled`` are schedules that could start a run.
    """

    work: Work = field(default_factory=Work)
    mark: DrainMark | None = None
    enabled: tuple[str, ...] = ()
    stopped_executions: list[str] = field(default_factory=list)
    stopped_jobs: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    _line: str = ""

    @property
    def drained(self) -> bool:
        """Whether nothing new may start."""
        return self.mark is not None and self.mark.drained

    @property
    def may_be_removed(self) -> bool:
        """Whether the stack can go without leaving anything running."""
        return self.work.idle and not self.enabled

    def note(self, steps: DrainSteps) -> None:
        """Remember what was stopped, each once."""
        for names, into in (
            ([one.name for one in steps.executions], self.stopped_executions),
            ([one.name for one in steps.jobs], self.stopped_jobs),
            ([one.workload for one in steps.leases], self.released),
        ):
            into.extend(name for name in names if name not in into)

    def progress(self) -> str | None:
        """A line about what is in progress, None where it has not changed."""
        line = in_progress(self.work)
        if line == self._line:
            return None
        self._line = line
        return line

    def document(self, stage: str) -> dict[str, Any]:
        """For programs."""
        mark = self.mark
        return {
            "stage": stage,
            "drained": self.drained,
            "since": iso(mark.at) if mark and mark.drained else None,
            "by": mark.by if mark and mark.drained else None,
            "idle": self.work.idle,
            "in_progress": {
                "trials": [one.name for one in self.work.trials],
                "runs": [{"execution": one.name, "phase": one.phase} for one in self.work.runs],
                "jobs": [one.name for one in self.work.jobs],
                "leases": [one.workload for one in self.work.leases],
            },
            "schedules_enabled": list(self.enabled),
            "schedules_disabled": list(mark.schedules) if mark else [],
            "stopped": {
                "executions": self.stopped_executions,
                "jobs": self.stopped_jobs,
                "leases": self.released,
            },
        }


def in_progress(work: Work) -> str:
    """One line: what is still in progress."""
    phases = Counter(str(run.phase) for run in work.runs)
    parts = [_count(len(work.trials), "trial")]
    parts += [f"{_count(phases[name], 'production run')} {name}" for name in sorted(phases)]
    parts += [_count(len(work.jobs), "training job"), _count(len(work.leases), "lease")]
    some = [part for part in parts if not part.startswith("0 ")]
    return f"In progress: {', '.join(some)}." if some else "Nothing is in progress."


def show_drained(report: Report, stack: str, *, local: bool) -> None:
    """The end of a drain, complete or not."""
    where = " --local" if local else ""
    if report.work.idle:
        say(f"{stack} is drained: nothing is in progress and nothing new starts.")
    else:
        say(f"{stack} is not drained yet: the time is up. Nothing new starts.")
        _show_work(report.work)
    disabled = report.mark.schedules if report.mark else ()
    for what, names in (
        ("schedules disabled", disabled),
        ("executions stopped", report.stopped_executions),
        ("jobs stopped", report.stopped_jobs),
        ("leases released", report.released),
    ):
        if names:
            _show_names(what, names)
    say("Flags are as they were.")
    if not report.work.idle:
        say(f"Go on waiting with: compilegate drain{where}")
    say(f"Let work start again with: compilegate drain --undo{where}")


def show_check(report: Report, stack: str) -> None:
    """Whether anything runs or could start."""
    if report.may_be_removed:
        say(f"{stack} is idle: nothing is in progress and no schedule is enabled.")
        return
    say(f"{stack} is in use.")
    _show_work(report.work)
    if report.enabled:
        _show_names("schedules enabled", report.enabled)
    if report.drained and report.mark is not None:
        say(f"It has been drained since {minute(report.mark.at)}; wait with: compilegate drain")
    else:
        say("Stop what runs, and let nothing new start, with: compilegate drain")


def show_undone(stack: str, enabled: Sequence[str] | None, *, as_json: bool) -> None:
    """The end of ``--undo``."""
    if as_json:
        emit_json({"drained": False, "schedules_enabled": list(enabled or ())})
    elif enabled is None:
        say(f"{stack} was not drained; nothing was changed.")
    else:
        say(f"{stack} starts work again; {_count(len(enabled), 'schedule')} enabled.")
        say("Trials that the drain stopped have to be run again: compilegate run FILE")


def _show_work(work: Work) -> None:
    say(in_progress(work))
    for what, names in (
        ("trials", [one.name for one in work.trials]),
        ("production runs", [f"{one.name} ({one.phase})" for one in work.runs]),
        ("training jobs", [one.name for one in work.jobs]),
        ("leases", [one.workload for one in work.leases]),
    ):
        if names:
            _show_names(what, names)


def _show_names(what: str, names: Sequence[str]) -> None:
    """Names are lines to copy; of many the first."""
    say(f"{what}: {len(names)}", indent=2)
    for name in names[:MOST_NAMES]:
        say_line(f"    {name}")
    if len(names) > MOST_NAMES:
        say(f"and {len(names) - MOST_NAMES} more", indent=4)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
