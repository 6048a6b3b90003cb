"""A month of production on an embedded cloud, a run for every second night.

Nothing here decides anything: it registers, starts runs and a trial, and injects the fault. The
deployed app decides which arm a run trains, when an alarm is raised and what becomes of the flag.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import Outcome, read_outcome
from compilegate.cli.register import register_files
from compilegate.cli.train import start_run
from compilegate.cli.trials.start import StartedTrial, follow, start, stop, watch
from compilegate.cli.trials.view import RunView, RunWatcher
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import TRAIN, Override
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.flag.change_flag import flag_versions, latest_flag
from compilegate.usecases.flag.override import find_candidate, set_by_hand
from compilegate.usecases.registration import RegisterOptions

if TYPE_CHECKING:
    from compilegate.cli.demo.production import ConsoleReporter

FAULT = "learning_rate:0.2"
INTERVAL_MILLISECONDS = 2 * 24 * 3600 * 1000
# Before the trial: a baseline to compare with. After the promotion: some runs without a fault.
# With the fault: more runs than detection of a fault of this size has ever taken.
BASELINE_RUNS, SOUND_RUNS, MOST_FAULTY_RUNS = 1, 3, 18
BY = "demo"
BY_HAND = "to show production although the trial proved nothing"
# Findings that timings of a busy machine, or a metric's chance, can leave a sound candidate with.
UNPROVEN = frozenset({
    "speed_inconclusive", "speedup_too_small", "speedup_below_promote", "full_run_disagrees",
    "full_run_implausible", "full_run_unproven", "saving_unproven", "quality_inconclusive",
})  # fmt: skip
# Findings that no load explains.
DEFECTS = frozenset({"quality_worse", "candidate_crashed", "numerics_wrong"})


def unproven_candidate(decision: Decision | None) -> str | None:
    """The candidate that a trial measured and found no defect in, and yet did not prove."""
    if decision is None or decision.verdict not in (Verdict.INCONCLUSIVE, Verdict.STAY_OFF):
        return None
    if DEFECTS & set(decision.codes):
        return None
    return next((one.arm for one in decision.reasons if one.code in UNPROVEN), None)


@dataclass(frozen=True)
class NightlyRun:
    """One production run; ``flag`` is the flag after it."""

    number: int
    view: RunView
    flag: Flag
    fault: str | None = None

    @property
    def scheduled(self) -> str:
        """The night that it represents, ISO time in UTC; empty before the run has begun."""
        return str(self.view.begun.scheduled or "") if self.view.begun else ""

    @property
    def alarmed(self) -> bool:
        """Whether an alarm was raised after it."""
        review = self.view.review
        return review is not None and review.reason("alarm") is not None

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        begun, review = self.view.begun, self.view.review
        return {
            "night": self.number,
            "stands_for": self.scheduled,
            "run": self.view.trial.trial,
            "arm": begun and begun.arm,
            "why": begun and begun.why,
            "metric": next((metric_of(run) for run in self.view.runs), None),
            "wall_seconds": next((wall_seconds_of(run) for run in self.view.runs), None),
            "verdict": review and review.verdict,
            "alarm": self.alarmed,
            "injected_fault": self.fault if begun and begun.arm != BASELINE else None,
            "flag": {"enabled": self.flag.enabled, "state": self.flag.state},
        }


@dataclass
class ScenarioResult:
    """What has happened so far; ``failure`` says where it did not go as planned.

    ``by_hand`` says whether the demo turned the flag on where the trial did not.
    """

    runs: list[NightlyRun] = field(default_factory=list)
    outcome: Outcome | None = None
    by_hand: bool = False
    failure: str | None = None


class DemoScenario:
    """A month of production on one cloud; ``result`` grows while it runs."""

    def __init__(
        self,
        file: WorkloadFile,
        cloud: Cloud,
        *,
        reporter: ConsoleReporter,
        live: Console,
        reports: Path,
    ) -> None:
        self.result = ScenarioResult()
        self._trials: list[StartedTrial] = []
        self._running: str | None = None
        self._file, self._cloud, self._reporter = file, cloud, reporter
        self._live, self._reports = live, reports
        self._began = time.time_ns() // 1_000_000

    @property
    def workload(self) -> str:
        """Its name."""
        return self._file.workload.name

    def run(self) -> ScenarioResult:
        """Run all phases; stops after the first that does not go as planned."""
        for phase in (
            self._train_baseline,
            self._hold_trial,
            self._follow_flag,
            self._inject_fault,
            self._remove_fault,
        ):
            phase()
            if self.result.failure is not None:
                break
        return self.result

    def stop(self, cause: str) -> None:
        """End what still runs, on a cloud that outlives the command."""
        stop(self._trials, self._cloud, cause)
        if self._running is not None:
            with contextlib.suppress(BotoCoreError, ClientError, OSError):
                self._cloud.with_production().executions.stop(self._running, cause)

    # ---- phases ---------------------------------------------------------------------------

    def _train_baseline(self) -> None:
        self._reporter.phase("Registered. The flag is off; production trains the baseline.")
        self._register(None)
        self._train(BASELINE_RUNS)

    def _hold_trial(self) -> None:
        self._reporter.phase("A trial measures speed and quality with the compiler.")
        self._trials = start([self._file], self._cloud)
        (view,) = follow(self._trials, self._cloud, self._live)
        self._trials = []
        outcome = read_outcome(view.trial, self._cloud, view.state, self._reports)
        self.result.outcome = outcome
        self._reporter.trial_ended(outcome)
        candidate = unproven_candidate(outcome.decision)
        if candidate is not None:
            self._turn_on_by_hand(candidate)
        enabled = self.result.by_hand or outcome.verdict == Verdict.PROMOTE
        self._expect(
            enabled and self._flag.enabled,
            f"the trial did not turn the compiler on: {outcome.headline}",
        )

    def _turn_on_by_hand(self, name: str) -> None:
        """What a person may do by ``compilegate flag set``; the ledger keeps that it was."""
        services = self._cloud.services
        words = f'flag set {self.workload} --candidate {name} --reason "{BY_HAND}"'
        self._reporter.turned_on_by_hand(self._cloud.command(words))
        candidate = find_candidate(self.workload, name, services)
        made = set_by_hand(self.workload, candidate, Override(BY, BY_HAND), services=services)
        self._expect(made.unwritten is None, f"the flag could not be written: {made.unwritten}")
        self.result.by_hand = True

    def _follow_flag(self) -> None:
        self._reporter.phase("Production follows the flag.")
        self._train(SOUND_RUNS)
        self._expect(self._flag.enabled, "the flag was turned off before the fault")

    def _inject_fault(self) -> None:
        self._reporter.phase(
            f"A fault is injected into the compiled arm ({FAULT_VARIABLE}={FAULT}); "
            "only the evidence shows it."
        )
        self._register(FAULT)
        for _ in range(MOST_FAULTY_RUNS):
            self._train(1, FAULT)
            if not self._flag.enabled or self.result.failure is not None:
                break
        versions = flag_versions(self.workload, self._cloud.services)
        detected = any(run.alarmed for run in self.result.runs if run.fault)
        self._expect(not self._flag.enabled, f"no revert within {MOST_FAULTY_RUNS} faulty runs")
        self._expect(
            versions[-1].by == TRAIN, "the flag was turned off, but not by production monitoring"
        )
        self._expect(detected, "the flag was turned off without an alarm on a faulty run")

    def _remove_fault(self) -> None:
        self._reporter.phase("The fault is removed. The flag stays off.")
        self._register(None)
        self._train(1)
        begun = self.result.runs[-1].view.begun
        reverted = begun is not None and begun.arm == BASELINE
        self._expect(reverted, "production did not return to the baseline")

    # ---- what phases do -------------------------------------------------------------------

    @property
    def _flag(self) -> Flag:
        return latest_flag(self.workload, self._cloud.services)[0]

    def _expect(self, met: bool, failure: str) -> None:
        if not met and self.result.failure is None:
            self.result.failure = failure

    def _register(self, fault: str | None) -> None:
        training = self._file.workload.training
        environment = {**training.environment}
        environment.pop(FAULT_VARIABLE, None)
        if fault:
            environment[FAULT_VARIABLE] = fault
        workload = replace(self._file.workload, training=replace(training, environment=environment))
        file = replace(self._file, workload=workload)
        (result,) = register_files([file], self._cloud, RegisterOptions(by=BY))
        if result.error is not None:
            raise result.error

    def _train(self, count: int, fault: str | None = None) -> None:
        for _ in range(count):
            number = len(self.result.runs) + 1
            moment = self._began + number * INTERVAL_MILLISECONDS
            run, self._running = start_run(self.workload, self._cloud, moment)
            watcher = RunWatcher(self.workload, run, self._running, self._cloud)
            (view,) = watch([watcher], self._cloud.poll_seconds, self._live, what="run")
            self._running = None
            ended = NightlyRun(number, view, self._flag, fault)
            self.result.runs.append(ended)
            self._reporter.run_ended(ended)
            trained = any(attempt.finished for attempt in view.runs)
            self._expect(trained, f"production run {number} did not finish training")
