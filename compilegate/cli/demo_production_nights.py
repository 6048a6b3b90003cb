"""A month of production, night after night, on an embedded cloud.

Nothing here decides anything: it registers, starts runs and a trial, and puts the fault in. Which
arm a run trains, when an alarm is raised and what becomes of the flag is the deployed app's doing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.cloud import Cloud
from compilegate.cli.outcome import Outcome, read_outcome
from compilegate.cli.register_many import register_files
from compilegate.cli.run_view import RunView, RunWatcher
from compilegate.cli.train import start_run
from compilegate.cli.trials import StartedTrial, follow, start
from compilegate.cli.watching import watch
from compilegate.domain.decision import Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import TRAIN
from compilegate.domain.production.fault import VARIABLE
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.change_flag import flag_history, latest_flag
from compilegate.usecases.registration import How

FAULT = "learning_rate:0.2"
EVERY_MILLISECONDS = 2 * 24 * 3600 * 1000
# Before the trial, after the promotion, and after the fault: a baseline to compare with, a while
# in which all is well, and more nights than any fault of this size has taken to be seen.
BEFORE, SOUND, MOST_FAULTY = 1, 3, 18


@dataclass(frozen=True)
class Night:
    """One run of production; ``watched`` is what the judge said after it."""

    number: int
    view: RunView
    flag: Flag
    fault: str | None = None

    @property
    def at(self) -> str:
        """The night that it stands for, ISO time in UTC; empty before the run has begun."""
        return str(self.view.begun.scheduled or "") if self.view.begun else ""

    @property
    def alarmed(self) -> bool:
        """Whether an alarm was standing after it."""
        reasons = (self.view.watched or {}).get("reasons") or ()
        return any(reason["code"] == "alarm" for reason in reasons)


@dataclass
class Month:
    """What has happened so far; ``wrong`` says where it did not go as the demo tells it."""

    nights: list[Night] = field(default_factory=list)
    outcome: Outcome | None = None
    wrong: str | None = None


class Teller(Protocol):
    """Says what happens while it happens."""

    def step(self, text: str) -> None:
        """What comes next."""
        ...

    def night(self, night: Night) -> None:
        """A run has ended."""
        ...

    def trial(self, outcome: Outcome) -> None:
        """The trial has ended."""
        ...


class Nights:
    """Lives through a month on one cloud; ``month`` grows while it does."""

    def __init__(
        self, file: WorkloadFile, cloud: Cloud, *, teller: Teller, live: Console, reports: Path
    ) -> None:
        self.month = Month()
        self.trials: list[StartedTrial] = []
        self.running: str | None = None
        self._file, self._cloud, self._teller = file, cloud, teller
        self._live, self._reports = live, reports
        self._began = time.time_ns() // 1_000_000

    @property
    def workload(self) -> str:
        """Its name."""
        return self._file.workload.name

    def live_through(self) -> Month:
        """The whole month; stops where it goes otherwise than the demo tells it."""
        for _ in self._chapters():
            if self.month.wrong is not None:
                break
        return self.month

    def _chapters(self) -> Iterator[None]:
        self._teller.step("Registered. Production trains the baseline: the flag is off.")
        self._register(None)
        self._nights(BEFORE)
        yield
        self._teller.step("A trial: is the job faster with a compiler, and as good?")
        self._trial()
        yield
        self._teller.step("Production follows the flag.")
        self._nights(SOUND)
        self._expect(self._flag.enabled, "the flag went off before there was a fault")
        yield
        self._teller.step(
            f"A fault is put into the compiled arm on purpose ({VARIABLE}={FAULT}); nobody is told."
        )
        self._register(FAULT)
        self._until_off()
        yield
        self._teller.step("The fault is taken out again. The flag stays off.")
        self._register(None)
        self._nights(1)
        trained = self.month.nights[-1].view.begun
        off = trained is not None and trained.arm == BASELINE
        self._expect(off, "production did not go back to the baseline")
        yield

    @property
    def _flag(self) -> Flag:
        return latest_flag(self.workload, self._cloud.services)[0]

    def _expect(self, so: bool, otherwise: str) -> None:
        if not so and self.month.wrong is None:
            self.month.wrong = otherwise

    def _register(self, fault: str | None) -> None:
        training = self._file.workload.training
        others = {key: value for key, value in training.environment.items() if key != VARIABLE}
        environment = {**others, VARIABLE: fault} if fault else others
        workload = replace(self._file.workload, training=replace(training, environment=environment))
        file = replace(self._file, workload=workload)
        (result,) = register_files([file], self._cloud, How(by="demo"))
        if result.error is not None:
            raise result.error

    def _trial(self) -> None:
        self.trials = start([self._file], self._cloud)
        (view,) = follow(self.trials, self._cloud, self._live)
        self.trials = []
        outcome = read_outcome(view.trial, self._cloud, view.state, self._reports)
        self.month.outcome = outcome
        self._teller.trial(outcome)
        promoted = outcome.verdict == Verdict.PROMOTE and self._flag.enabled
        self._expect(promoted, f"the trial did not turn the compiler on: {outcome.headline}")

    def _nights(self, count: int) -> None:
        for _ in range(count):
            self._night()

    def _until_off(self) -> None:
        for _ in range(MOST_FAULTY):
            self._night(FAULT)
            if not self._flag.enabled or self.month.wrong is not None:
                break
        history = flag_history(self.workload, self._cloud.services)
        seen = any(night.alarmed for night in self.month.nights if night.fault)
        self._expect(not self._flag.enabled, f"no revert within {MOST_FAULTY} faulty nights")
        self._expect(str(history[-1]["by"]) == TRAIN, "the flag went off, but not by itself")
        self._expect(seen, "the flag went off without an alarm on a faulty night")

    def _night(self, fault: str | None = None) -> None:
        number = len(self.month.nights) + 1
        moment = self._began + number * EVERY_MILLISECONDS
        run, arn = start_run(self.workload, self._cloud, moment)
        self.running = arn
        watcher = RunWatcher(self.workload, run, arn, self._cloud)
        (view,) = watch([watcher], self._cloud.poll_seconds, self._live, what="run")
        self.running = None
        night = Night(number, view, self._flag, fault)
        self.month.nights.append(night)
        self._teller.night(night)
        trained = any(attempt.finished for attempt in view.runs)
        self._expect(trained, f"the run of night {number} did not train to its end")

    def stop(self, cause: str) -> None:
        """End what still runs, on a cloud that outlives the command."""
        if self.running is not None:
            self._cloud.with_production().executions.stop(self.running, cause)


def night_document(night: Night) -> dict[str, Any]:
    """A night for programs."""
    begun, watched = night.view.begun, night.view.watched or {}
    return {
        "night": night.number,
        "stands_for": night.at,
        "run": night.view.trial.trial,
        "arm": begun and begun.arm,
        "why": begun and begun.why,
        "metric": next((run.result.get("metric") for run in night.view.runs), None),
        "wall_seconds": next((run.result.get("wall_seconds") for run in night.view.runs), None),
        "verdict": watched.get("verdict"),
        "alarm": night.alarmed,
        "injected_fault": night.fault if begun and begun.arm != BASELINE else None,
        "flag": {"enabled": night.flag.enabled, "state": night.flag.state},
    }
