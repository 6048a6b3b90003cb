"""``compilegate demo`` and ``demo-production``: the whole loop on this machine.

Nothing here decides anything: the demos register, start runs and trials, and inject a fault. The
deployed app decides which arm a run trains, when an alarm is raised and what becomes of the flag.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

from compilegate import __version__
from compilegate.adapters.workload_files import FOLDER as DATA
from compilegate.adapters.workload_files import SCRIPT, WorkloadFile
from compilegate.cli.check import read_files
from compilegate.cli.common.cloud import Cloud, Keeper, StartedCloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED
from compilegate.cli.common.outcome import Outcome, decision_rows, read_outcome
from compilegate.cli.common.output import answer, busy_note, console, moves
from compilegate.cli.common.session import REPORTS, JsonOption, Providers, ReportsOption, session
from compilegate.cli.flag import on_words
from compilegate.cli.register import register_files
from compilegate.cli.report import page_files, save_history
from compilegate.cli.run import (
    STOP_CAUSE,
    show_outcome,
    start,
    start_run,
    stop,
    watch,
)
from compilegate.cli.trials import RunWatcher, TrialWatcher, View
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.flag import Flag
from compilegate.domain.flag_change import TRAIN, Override
from compilegate.domain.formats import UNKNOWN, clock, fixed, shown
from compilegate.domain.production.registration import FAULT_VARIABLE
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.workload.model import BASELINE
from compilegate.place import INSTALLED, PROJECT, work_folder
from compilegate.usecases.flag.change_flag import (
    find_candidate,
    flag_versions,
    latest_flag,
    set_by_hand,
)
from compilegate.usecases.production.review_production import review_production
from compilegate.usecases.records import Trial
from compilegate.usecases.registration import RegisterOptions
from compilegate_local import TEMPLATES

TAIL_CHARACTERS = 1500
# An installed package is not written to: the demos run in a copy.
FOLDER = work_folder() / f"demo-{__version__}" if INSTALLED else PROJECT
WORKLOADS = FOLDER / "workloads"
DEMO_FILES, NIGHTLY = "demo-*.yaml", WORKLOADS / "nightly-lm.yaml"
EXPECTED = (
    "Expected on two free cores: a verdict at once, the next within a minute, the last within four."
)
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
]
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
DEFECTS = frozenset({"quality_worse", "candidate_crashed", "numerics_wrong", "not_equivalent"})


def demo(
    ctx: typer.Context,
    *,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Another workload file; repeatable."),
    ] = None,
    keep: KeepOption = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Run three real workloads end to end on this machine.

    Needs no AWS account, no Docker and no GPU.

    \b
    compilegate demo
    compilegate demo --keep        then: compilegate status --local
    compilegate demo --workloads workloads/my-job.yaml

    Starts the embedded cloud, deploys the app, trains for a few minutes, shows each verdict as it
    is reached, and then each outcome as `compilegate run` does.

    Exit code 0 when every trial reached a verdict, whatever it is, and has its report; otherwise 1.
    """
    progress, began = console(stderr=as_json), time.monotonic()
    put_in_place()
    paths = workloads or sorted(WORKLOADS.glob(DEMO_FILES))
    if not paths:
        raise EnvironmentNotReadyError(
            f"{WORKLOADS / DEMO_FILES} matches no file",
            fix="run the demo from a complete checkout, or name files with --workloads.",
        )
    with demo_cloud(session(ctx).providers, progress, keep=keep) as started:
        files = read_workloads(paths)
        ready = time.monotonic() - began
        simulated = started.cloud.services.settings.simulated
        names = ", ".join(file.workload.name for file in files)
        progress.print(f"Ready after {ready:.0f} s. Trials, all at once: {names}.")
        logs = "Logs of every part: compilegate local logs (in another terminal)"
        for line in filter(None, (simulated, logs, "" if workloads else EXPECTED)):
            progress.print(line)
        views, outcomes = _evaluate(files, started, out, progress)
    seconds = seconds_by_part(
        views, ready=ready, deploy=started.deploy_seconds, total=time.monotonic() - began
    )
    for outcome in () if as_json else outcomes:
        show_outcome(outcome)
    documents = [outcome.to_dict() for outcome in outcomes]
    document = {"outcomes": documents, "seconds": seconds, "simulated": simulated}
    answer(document, TEMPLATES / "demo", as_json=as_json, keep=keep)
    if any(outcome.exit_code == FAILURE for outcome in outcomes):
        raise typer.Exit(FAILURE)


def read_workloads(paths: Sequence[Path]) -> list[WorkloadFile]:
    """Read every file before anything starts; raises InvalidInputError for the first wrong one."""
    files = []
    for _, outcome in read_files(paths):
        if isinstance(outcome, InvalidInputError):
            raise outcome
        files.append(outcome)
    return files


def put_in_place() -> None:
    """Copy what the demos need, once."""
    if FOLDER.is_dir():
        return
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    # Made beside and renamed: another demo may begin now.
    with tempfile.TemporaryDirectory(dir=FOLDER.parent, prefix=".new-") as place:
        copy = Path(place) / FOLDER.name
        for name in ("training", "workloads"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
        with contextlib.suppress(OSError):
            copy.rename(FOLDER)


@contextmanager
def demo_cloud(providers: Providers, progress: Console, *, keep: bool) -> Iterator[StartedCloud]:
    """The embedded cloud; the demos' data are written while it starts."""
    from compilegate_localcloud.api import training_python  # noqa: PLC0415 - brings boto3

    if busy := busy_note():
        progress.print(
            f"{busy}: the demo takes longer, and timings may be too blurred to prove a speed-up.",
            style="yellow",
        )
    progress.print("Preparing the data, starting the embedded cloud, deploying the app …")
    command = [str(training_python()), str(SCRIPT), str(DATA)]
    with preparing_data(command) as wait, providers.started_local(keep=keep) as started:
        wait()
        yield started


@contextmanager
def preparing_data(command: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Start the command that writes the data; yields the function that waits for it.

    The function raises EnvironmentNotReadyError with the command's last output. The command never
    outlives the block.
    """
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(  # noqa: S603 - the argument list is fixed
            command, cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):

        def wait() -> None:
            if process.wait() != 0:
                output.seek(0)
                message = output.read().decode("utf-8", "replace")[-TAIL_CHARACTERS:]
                raise EnvironmentNotReadyError(
                    f"{SCRIPT} did not write the demo's data:\n{message}"
                )

        try:
            yield wait
        finally:
            process.kill()


def _evaluate(
    files: list[WorkloadFile], started_cloud: StartedCloud, out: Path, progress: Console
) -> tuple[list[View], list[Outcome]]:
    """Run the trials and show each verdict as it is reached."""
    cloud, began = started_cloud.cloud, time.monotonic()
    started: list[TrialWatcher] = []
    keeper = Keeper(cloud)
    outcomes: dict[str, Outcome] = {}

    def show_verdict(view: View) -> None:
        outcome = read_outcome(view.trial, cloud, view.state, out)
        outcomes[outcome.workload] = outcome
        at, name = clock(time.monotonic() - began), (outcome.workload, "bold")
        progress.print(Text.assemble(f"{at:>6} ", name, f": {outcome.headline}"))

    try:
        started = start(files, cloud)
        views = watch(
            started, cloud.poll_seconds, progress, on_end=show_verdict, on_look=keeper.look
        )
    except KeyboardInterrupt:
        typer.echo("Stopping the trials and the embedded cloud …", err=True)
        if not started_cloud.started_now:
            stop(started, cloud)  # the cloud outlives this command, so its trials must be ended
        raise typer.Exit(STOPPED) from None
    finally:
        keeper.end([item.trial for item in started])
    return views, [outcomes[view.trial.workload] for view in views]


def seconds_by_part(
    views: Sequence[View], *, ready: float, deploy: float, total: float
) -> dict[str, float]:
    """Where the demo's wall clock went, ``ready`` after it began; ``overhead`` is not training.

    Training is the time in which any job trained; the loop is the rest of the trials.
    """
    spans = sorted(
        (job.started_at, job.ended_at)
        for view in views
        for job in view.jobs
        if job.started_at is not None and job.ended_at is not None
    )
    training, reached = 0.0, 0.0
    for began, ended in spans:
        training += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    parts = {
        "total": total,
        "setup": ready - deploy,
        "deploy": deploy,
        "training": training,
        "loop": max(total - ready - training, 0.0),
        "overhead": total - training,
    }
    return {name: round(seconds, 1) for name, seconds in parts.items()}


def demo_production(
    ctx: typer.Context,
    *,
    workload: Annotated[
        Path, typer.Option(metavar="FILE", help="Another workload file.", show_default=False)
    ] = NIGHTLY,
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
        finally:
            Keeper(cloud).end(month.trials)
        document = {
            "as_planned": month.wrong is None,
            "wrong": month.wrong,
            "trial": None if month.outcome is None else month.outcome.to_dict(),
            "turned_on_by_hand": month.by_hand,
            "runs": month.runs,
            "notification": month.notification(),
            "history": page_files(save_history(month.workload, cloud.services, out)),
            "simulated": simulated,
            "seconds": round(time.monotonic() - began, 1),
        }
    answer(document, TEMPLATES / "demo_production", as_json=as_json, keep=keep)
    if month.wrong:
        raise typer.Exit(FAILURE)


# What is to hold as the month goes on, and what went wrong where it does not.
Expectation = tuple[bool, str]


class Month:
    """A month of production on one cloud, a run for every second night, shown on 80 columns.

    ``runs`` are the documents of its runs, ``trials`` those that it started. ``by_hand`` says
    whether the demo turned the flag on where the trial did not, ``wrong`` what did not go as
    planned.
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
        self.trials: list[Trial] = []
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
        written = review_production(event, services=self._cloud.services)
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
        self.trials = [item.trial for item in self._trials]
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
        "stands_for": "" if begun is None else str(begun.scheduled or ""),
        "run": view.trial.trial,
        "arm": None if begun is None else begun.arm,
        "why": None if begun is None else begun.why,
        "metric": next((metric_of(run) for run in view.runs), None),
        "wall_seconds": next((wall_seconds_of(run) for run in view.runs), None),
        "verdict": None if review is None else review.verdict,
        "alarm": review is not None and review.reason("alarm") is not None,
        "injected_fault": fault if begun is not None and begun.arm != BASELINE else None,
        "flag": {"enabled": flag.enabled, "state": flag.state},
    }


def night_line(night: dict[str, Any]) -> str:
    """Night, arm, quality, wall clock, and what the flag is after it."""
    at, metric, wall = night["stands_for"], night["metric"], night["wall_seconds"]
    date = f"{datetime.fromisoformat(at).astimezone(UTC):%d %b}" if at else ""
    state = "ALARM" if night["alarm"] else "faulty" if night["injected_fault"] else ""
    columns = (
        f"{night['night']:>3} {date:<6}", f"{night['arm'] or UNKNOWN:<9}",
        f"{WHY.get(night['why'], ''):<12}", f"{shown(metric, fixed):>7}",
        f"{shown(wall, clock):>5}", f"{state:<6}",
        f"flag {on_words(Flag(**night['flag']))}",
    )  # fmt: skip
    return "  ".join(columns).rstrip()
