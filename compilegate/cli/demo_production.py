"""``compilegate demo-production``: a month of production in minutes, a fault and its revert.

Nothing here decides anything: it registers, starts runs and a trial, and injects the fault. The
deployed app decides which arm a run trains, when an alarm is raised and what becomes of the flag.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED
from compilegate.cli.common.outcome import Outcome, decision_rows, read_outcome
from compilegate.cli.common.output import console, moves
from compilegate.cli.common.session import REPORTS, JsonOption, ReportsOption, session
from compilegate.cli.common.template import answer
from compilegate.cli.demo import WORKLOADS, KeepOption, demo_cloud, put_in_place
from compilegate.cli.flag import on_words
from compilegate.cli.register import register_files
from compilegate.cli.report import page_files, save_history
from compilegate.cli.run import (
    STOP_CAUSE,
    read_workloads,
    start,
    start_run,
    stop,
    watch,
)
from compilegate.cli.trials import RunWatcher, TrialWatcher, View
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import TRAIN, Override
from compilegate.domain.formats import UNKNOWN, clock, fixed
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.flag.change_flag import flag_versions, latest_flag
from compilegate.usecases.flag.override import find_candidate, set_by_hand
from compilegate.usecases.production.watch_production import watch_production
from compilegate.usecases.registration import RegisterOptions

FILE = WORKLOADS / "nightly-lm.yaml"
FAULT = "learning_rate:0.2"
DAYS = 2  # from one run to the next
# Before the trial: a baseline to compare with. After the promotion: some runs without a fault.
# With the fault: more runs than detection of a fault of this size has ever taken.
BASELINE_RUNS, SOUND_RUNS, MOST_FAULTY_RUNS = 1, 3, 18
BY = "demo"
BY_HAND = "to show production although the trial proved nothing"
# What the line says of a run beside its arm.
WHY = {"confirm": "checks alarm", "refresh": "refresh", "rerun": "again", "fallback": "elsewhere"}
# Findings that timings of a busy machine, or a metric's chance, can leave a sound candidate with.
UNPROVEN = frozenset({
    "speed_inconclusive", "speedup_too_small", "speedup_below_promote", "full_run_disagrees",
    "full_run_implausible", "full_run_unproven", "saving_unproven", "quality_inconclusive",
})  # fmt: skip
# Findings that no load explains.
DEFECTS = frozenset({"quality_worse", "candidate_crashed", "numerics_wrong"})


def demo_production(
    ctx: typer.Context,
    *,
    workload: Annotated[
        Path, typer.Option(metavar="FILE", help="Another workload file.", show_default=False)
    ] = FILE,
    keep: KeepOption = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Run a month of production, with a fault, on this machine.

    A promotion, a fault and its revert. Needs no AWS account, no Docker and no GPU.

    \b
    compilegate demo-production
    compilegate demo-production --keep
    compilegate flag history lm-nightly --local

    Real jobs train one after another, each representing another night. A trial turns the compiler
    on, a fault is injected into the compiled arm, and production detects it and turns the compiler
    off by itself. Where the trial proves nothing, as on a busy machine, the demo says so and turns
    the flag on by hand.

    Exit code 0 when all of that happened; otherwise 1.
    """
    progress, began = console(stderr=as_json), time.monotonic()
    put_in_place()
    with demo_cloud(session(ctx).providers, progress, keep=keep) as started:
        (file,) = read_workloads([workload])
        cloud = started.cloud
        month = Month(file, cloud, progress, reports=out)
        month.phase(f"Ready after {time.monotonic() - began:.0f} s. Simulated here:")
        simulated = [
            *filter(None, [cloud.services.settings.simulated]),
            f"the clock. Runs start one after another and represent nights {DAYS} days apart.",
            f"the fault. {FAULT_VARIABLE}={FAULT} lets the compiled arm train with a fifth of its "
            "learning rate; the training, its losses and every verdict are real.",
        ]
        for text in simulated:
            progress.print(f"- {text}")
        try:
            month.run()
        except KeyboardInterrupt:
            typer.echo("Stopping the demo and the embedded cloud …", err=True)
            if not started.started_now:  # the cloud outlives this command, its executions must end
                month.stop()
            raise typer.Exit(STOPPED) from None
        document = {
            "went_as_told": month.wrong is None,
            "wrong": month.wrong,
            "trial": month.outcome and month.outcome.to_dict(),
            "turned_on_by_hand": month.by_hand,
            "nights": month.runs,
            "notification": month.notification(),
            "story": page_files(save_history(month.workload, cloud.services, out)),
            "simulated": simulated,
            "seconds": round(time.monotonic() - began, 1),
        }
    answer(document, "demo_production", as_json=as_json, keep=keep)
    if month.wrong:
        raise typer.Exit(FAILURE)


# What is to hold as the month goes on, and what went wrong where it does not.
Expectation = tuple[bool, str]


class Month:
    """A month of production on one cloud, a run for every second night, shown on 80 columns.

    ``runs`` are the documents of its runs. ``by_hand`` says whether the demo turned the flag on
    where the trial did not, ``wrong`` what did not go as planned.
    """

    def __init__(
        self, file: WorkloadFile, cloud: Cloud, progress: Console, *, reports: Path
    ) -> None:
        self.runs: list[dict[str, Any]] = []
        self.outcome: Outcome | None = None
        self.by_hand = False
        self.wrong: str | None = None
        self.workload = file.workload.name
        self._file, self._cloud, self._progress, self._reports = file, cloud, progress, reports
        # Without a terminal a line for each run is enough.
        self._live = progress if moves(progress) else Console(quiet=True)
        self._began = time.time_ns() // 1_000_000
        self._trials: list[TrialWatcher] = []
        self._running: str | None = None
        self._changed_by: str | None = None

    def run(self) -> None:
        """Run all phases; stops at the first thing that does not go as planned."""
        self.wrong = next((otherwise for met, otherwise in self._expectations() if not met), None)

    def stop(self) -> None:
        """End what still runs, on a cloud that outlives the command."""
        stop(self._trials, self._cloud)
        if self._running:
            with contextlib.suppress(BotoCoreError, ClientError, OSError):
                self._cloud.production.executions.stop(self._running, STOP_CAUSE)

    def notification(self) -> dict[str, Any] | None:
        """The message of the flag's last change; the step that wrote it is idempotent."""
        if not self._changed_by:
            return None
        event = {"workload": self.workload, "run": self._changed_by}
        written = watch_production(event, services=self._cloud.services)
        return {key: written[key] for key in ("subject", "message") if key in written} or None

    def phase(self, text: str) -> None:
        """Say what comes next."""
        self._progress.print()
        self._progress.print(Text(text, style="bold"))

    def _expectations(self) -> Iterator[Expectation]:
        self.phase("Registered. The flag is off; production trains the baseline.")
        self._register(None)
        yield from self._train(BASELINE_RUNS)

        self.phase("A trial measures speed and quality with the compiler.")
        yield from self._hold_trial()

        self.phase("Production follows the flag.")
        yield from self._train(SOUND_RUNS)
        yield self._flag.enabled, "the flag was turned off before the fault"

        self.phase(
            f"A fault is injected into the compiled arm ({FAULT_VARIABLE}={FAULT}); "
            "only the evidence shows it."
        )
        self._register(FAULT)
        for _ in range(MOST_FAULTY_RUNS):
            yield from self._train(1, FAULT)
            if not self._flag.enabled:
                break
        last = flag_versions(self.workload, self._cloud.services)[-1]
        alarmed = any(night["alarm"] for night in self.runs[BASELINE_RUNS + SOUND_RUNS :])
        yield not self._flag.enabled, f"no revert within {MOST_FAULTY_RUNS} faulty runs"
        yield last.by == TRAIN, "the flag was turned off, but not by production monitoring"
        yield alarmed, "the flag was turned off without an alarm on a faulty run"

        self.phase("The fault is removed. The flag stays off.")
        self._register(None)
        yield from self._train(1)
        yield self.runs[-1]["arm"] == BASELINE, "production did not return to the baseline"

    def _hold_trial(self) -> Iterator[Expectation]:
        self._trials = start([self._file], self._cloud)
        (view,) = watch(self._trials, self._cloud.poll_seconds, self._live)
        self._trials = []
        outcome = read_outcome(view.trial, self._cloud, view.state, self._reports)
        self.outcome = outcome
        self._progress.print(Text(f"  {outcome.headline}"))
        if outcome.decision:
            for name, value in decision_rows(outcome.decision, outcome.applied):
                self._progress.print(Text(f"  {name} {value}"))
            if candidate := unproven_candidate(outcome.decision):
                yield from self._turn_on_by_hand(candidate)
        enabled = (self.by_hand or outcome.verdict == Verdict.PROMOTE) and self._flag.enabled
        yield enabled, f"the trial did not turn the compiler on: {outcome.headline}"

    def _turn_on_by_hand(self, name: str) -> Iterator[Expectation]:
        """What a person may do by ``compilegate flag set``; the ledger keeps that it was."""
        services = self._cloud.services
        words = f'flag set {self.workload} --candidate {name} --reason "{BY_HAND}"'
        self.phase("The trial did not prove the compiler, so it left the flag off.")
        self._progress.print(
            "Its figures are measured, and vary more on a busy machine. To show production anyway, "
            "the demo now turns the flag on by hand, as a person may:"
        )
        self._progress.print(Text(f"  {self._cloud.command(words)}"), soft_wrap=True)
        candidate = find_candidate(self.workload, name, services)
        made = set_by_hand(self.workload, candidate, Override(BY, BY_HAND), services=services)
        yield made.unwritten is None, f"the flag could not be written: {made.unwritten}"
        self.by_hand = True

    @property
    def _flag(self) -> Flag:
        return latest_flag(self.workload, self._cloud.services)[0]

    def _register(self, fault: str | None) -> None:
        training = self._file.workload.training
        environment = {**training.environment, FAULT_VARIABLE: fault or ""}
        if not fault:
            del environment[FAULT_VARIABLE]
        workload = replace(self._file.workload, training=replace(training, environment=environment))
        file = replace(self._file, workload=workload)
        (result,) = register_files([file], self._cloud, RegisterOptions(by=BY))
        if result.error:
            raise result.error

    def _train(self, count: int, fault: str | None = None) -> Iterator[Expectation]:
        for _ in range(count):
            number = len(self.runs) + 1
            moment = self._began + number * DAYS * 24 * 3600 * 1000
            run, self._running = start_run(self.workload, self._cloud, moment)
            watcher = RunWatcher(self.workload, run, self._running, self._cloud)
            (view,) = watch([watcher], self._cloud.poll_seconds, self._live, what="run")
            self._running = None
            night = night_document(number, view, self._flag, fault)
            self.runs.append(night)
            if view.review and view.review.transition:
                self._changed_by = run
            line = Text(night_line(night), style="red" if night["alarm"] else "")
            self._progress.print(line, soft_wrap=True)
            trained = any(attempt.finished for attempt in view.runs)
            yield trained, f"production run {number} did not finish training"


def unproven_candidate(decision: Decision) -> str:
    """The candidate that a trial measured and found no defect in, and yet did not prove."""
    undecided = decision.verdict in (Verdict.INCONCLUSIVE, Verdict.STAY_OFF)
    if not undecided or DEFECTS & set(decision.codes):
        return ""
    return next((one.arm or "" for one in decision.reasons if one.code in UNPROVEN), "")


def night_document(number: int, view: View, flag: Flag, fault: str | None) -> dict[str, Any]:
    """One production run for programs; ``flag`` is the flag after it."""
    begun, review = view.begun, view.review
    return {
        "night": number,
        # The night that it represents; empty before the run has begun.
        "stands_for": str(begun.scheduled or "") if begun else "",
        "run": view.trial.trial,
        "arm": begun and begun.arm,
        "why": begun and begun.why,
        "metric": next((metric_of(run) for run in view.runs), None),
        "wall_seconds": next((wall_seconds_of(run) for run in view.runs), None),
        "verdict": review and review.verdict,
        "alarm": review is not None and review.reason("alarm") is not None,
        "injected_fault": fault if begun and begun.arm != BASELINE else None,
        "flag": {"enabled": flag.enabled, "state": flag.state},
    }


def night_line(night: dict[str, Any]) -> str:
    """Night, arm, quality, wall clock, and what the flag is after it."""
    at, metric, wall = night["stands_for"], night["metric"], night["wall_seconds"]
    date = f"{datetime.fromisoformat(at).astimezone(UTC):%d %b}" if at else ""
    state = "ALARM" if night["alarm"] else "faulty" if night["injected_fault"] else ""
    columns = (
        f"{night['night']:>3} {date:<6}", f"{night['arm'] or UNKNOWN:<9}",
        f"{WHY.get(night['why'], ''):<12}", f"{UNKNOWN if metric is None else fixed(metric):>7}",
        f"{UNKNOWN if wall is None else clock(wall):>5}", f"{state:<6}",
        f"flag {on_words(Flag(**night['flag']))}",
    )  # fmt: skip
    return "  ".join(columns).rstrip()
