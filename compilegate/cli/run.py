"""``compilegate run`` and ``train``: trials of workloads, and one production run by hand.

Executions are started, followed to their end, and stopped.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from compilegate.adapters.stores import error_code
from compilegate.adapters.workload_files import WorkloadFile, package, read_workload
from compilegate.cli.check import notes_on, read_files, same_name
from compilegate.cli.common.cloud import Cloud, Keeper, check_registered
from compilegate.cli.common.error_handling import (
    FAILURE,
    STOPPED,
    error_document,
    worst_exit_code,
)
from compilegate.cli.common.error_handling import exit_code as error_exit_code
from compilegate.cli.common.error_handling import explain as explained
from compilegate.cli.common.outcome import Outcome, decision_rows, full_run_words, read_outcome
from compilegate.cli.common.output import (
    busy_note,
    console,
    emit_json,
    error_text,
    show,
)
from compilegate.cli.common.session import (
    REPORTS,
    Invocation,
    NameArgument,
    ReportsOption,
    on_cloud,
)
from compilegate.cli.flag import on_words
from compilegate.cli.trials import RunWatcher, TrialWatcher, View, Watcher, screen
from compilegate.domain import naming
from compilegate.domain.claims import run_reason
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.failures import IN_PROGRESS, explain
from compilegate.domain.flag import OFF, parse_flag
from compilegate.domain.notes import said
from compilegate.domain.optional import map_optional
from compilegate.domain.production.savings import metric_of, wall_seconds_of
from compilegate.domain.records.production import Review
from compilegate.flags.backoff import BUSY
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.records import Trial, load_registered
from compilegate.usecases.registration import submit

STOP_CAUSE = "stopped with Ctrl-C"
STOP_SECONDS = 20.0
LOST_AFTER = 10
AWS_ERRORS = (BotoCoreError, ClientError, OSError)
# Executions that are read at a time; each takes a description and some of its jobs.
LOOKS_AT_ONCE = 10
# Times as long between two looks, where a service asks for fewer calls.
SLOWEST = 12.0
_CHANCE = random.SystemRandom()


@dataclass(frozen=True)
class NotStarted:
    """A file of which no trial was started, and why."""

    file: Path
    error: Exception
    workload: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``, beside the outcomes of those that were."""
        return {
            "workload": self.workload,
            "file": str(self.file),
            "trial": None,
            "verdict": "not_started",
            **error_document(self.error),
        }


def start(
    files: Sequence[WorkloadFile], cloud: Cloud, refused: list[NotStarted] | None = None
) -> list[TrialWatcher]:
    """Upload every workload and start its execution.

    Where one cannot start, it is added to ``refused`` and the others go on; without that list the
    started ones are stopped. Raises DrainedError, before anything is uploaded, while the deployment
    is drained.
    """
    refuse_if_drained(cloud.services)
    trial_id = naming.trial_id(time.time_ns() // 1_000_000)
    started: list[TrialWatcher] = []
    for file in files:
        try:
            started.append(_started(file, trial_id, cloud))
        except Exception as error:
            if refused is None:
                stop(started, cloud, "another trial of the same command could not start")
                raise
            refused.append(NotStarted(file.path, error, file.workload.name))
        except BaseException:
            stop(started, cloud)
            raise
    return started


def _started(file: WorkloadFile, trial_id: str, cloud: Cloud) -> TrialWatcher:
    store = cloud.services.store
    read_workload(file.path, store=store)
    # With what the report of its trial has to say of its script, and what it is started with again:
    # a local trial's by a command in this folder, one in AWS in any copy of the project.
    path, here = file.path.resolve(), Path.cwd()
    beside = path.relative_to(here) if path.is_relative_to(here) else path
    origin = str(beside) if cloud.is_local else file.origin
    packed = replace(package(file), notes=notes_on(file), origin=origin)
    trial = submit(packed, trial=trial_id, store=store)
    name = naming.execution_name(trial.workload, trial.trial)
    payload = {"workload": trial.workload, "trial": trial.trial, "spec_key": trial.spec_key}
    return TrialWatcher(trial, cloud.executions.start(name, payload), cloud)


def start_or_go_on(
    files: Sequence[WorkloadFile],
    running: Sequence[str],
    cloud: Cloud,
    refused: list[NotStarted] | None = None,
) -> tuple[list[TrialWatcher], list[TrialWatcher]]:
    """The trials of these workloads in their order, and others that go on; ``refused`` as there.

    ``running`` are executions of a local cloud that was killed and started again. A workload whose
    trial goes on is given no second one: the two would wait for each other.
    """
    started: dict[str, TrialWatcher] = {}
    for arn in running:
        trial = Trial.from_event(cloud.executions.input_of(arn))
        started[trial.workload] = TrialWatcher(trial, arn, cloud)
        name = naming.execution_name(trial.workload, trial.trial)
        typer.echo(
            f"The local cloud had been killed; {name} goes on, with the file and the code that it "
            "was started with.", err=True,
        )  # fmt: skip
    new = start([file for file in files if file.workload.name not in started], cloud, refused)
    started |= {item.trial.workload: item for item in new}
    names = [file.workload.name for file in files]
    asked_for = [started.pop(name) for name in names if name in started]
    return asked_for, list(started.values())


class Looks:
    """Reads executions in turn, a few at a time: however many there are, the services' rates hold.

    One that has ended is not read again.
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers, self._views = watchers, dict[int, View]()
        self._next = 0

    def take(self) -> list[View]:
        """The views so far, after the next look."""
        numbers, count = range(len(self._watchers)), len(self._watchers)
        going = [n for n in numbers if n not in self._views or self._views[n].state.running]
        for number in sorted(going, key=lambda n: (n - self._next) % count)[:LOOKS_AT_ONCE]:
            self._views[number] = self._watchers[number].read()
            self._next = number + 1
        return [self._views[number] for number in sorted(self._views)]


def watch(
    watchers: Sequence[Watcher],
    poll_seconds: float,
    console: Console,
    *,
    what: str = "trial",
    on_end: Callable[[View], None] | None = None,
    on_look: Callable[[Sequence[View]], None] | None = None,
) -> list[View]:
    """Show progress until every execution has ended; returns the last view of each.

    ``on_look`` gets the views each time, ``on_end`` the last view of each once it has ended.
    Raises EnvironmentNotReadyError after ten failures in a row to read them; where a service only
    asks for fewer calls, they are read less often.
    """
    looks, lost, slower, ended = Looks(watchers), 0, 1.0, set[Trial]()
    with screen(console) as show:
        while True:
            try:
                views = looks.take()
                lost, slower = 0, 1.0
            except AWS_ERRORS as error:
                slower = min(2 * slower, SLOWEST)
                lost += error_code(error) not in BUSY
                if lost >= LOST_AFTER:
                    raise EnvironmentNotReadyError(
                        f"the {what} can no longer be watched ({error}); it continues",
                        fix="see `compilegate status`",
                    ) from error
            else:
                show(views)
                if on_look:
                    on_look(views)
                for view in views:
                    if on_end and not view.state.running and view.trial not in ended:
                        ended.add(view.trial)
                        on_end(view)
                if len(views) == len(watchers) and not any(one.state.running for one in views):
                    return views
            # Several commands at once do not stay in step.
            time.sleep(poll_seconds * slower * _CHANCE.uniform(0.8, 1.2))


def stop(started: Sequence[TrialWatcher], cloud: Cloud, cause: str = STOP_CAUSE) -> None:
    """Stop the executions and wait a moment for their jobs to end, those that were seen."""
    for item in started:
        with contextlib.suppress(*AWS_ERRORS):
            cloud.executions.stop(item.arn, cause)
    jobs = [job for item in started for job in item.active_jobs]
    deadline = time.monotonic() + STOP_SECONDS
    with contextlib.suppress(*AWS_ERRORS):
        while time.monotonic() < deadline and any(
            one["TrainingJobStatus"] == IN_PROGRESS
            for one in cloud.services.jobs.describe_all(jobs).values()
        ):
            time.sleep(0.2)


@on_cloud
def run(
    invocation: Invocation,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Workload files (YAML).")],
    *,
    out: ReportsOption = REPORTS,
) -> None:
    """Evaluate workloads: measure, judge, set the flag, report.

    \b
    compilegate run workloads/article-bert.yaml
    compilegate run workloads/demo-lm.yaml workloads/demo-tabular.yaml --local

    Several files are evaluated at the same time. One that cannot start is named, with its reason,
    and the others go on; with --json its verdict is not_started. With --local, Ctrl-C stops the
    trials; in AWS they continue.

    Exit code 0 promote, 10 stay off or ineligible, 11 inconclusive, 13 invalid, 2 bad input, 1
    failure, also to start or to write the report; of several the worst.
    """
    workloads, refused = _readable(files)
    quiet = invocation.as_json
    if invocation.local:
        progress = console(stderr=quiet)
        if busy := busy_note():
            progress.print(f"{busy}: its trials measure the load too.", style="yellow")
        progress.print("Starting the embedded cloud if it does not run, deploying the app …")
        with invocation.session.providers.started_local(keep=False) as local:
            goes_on = local.started_now and local.resumed
            running = local.cloud.executions.running_arns() if goes_on else ()
            outcomes = _evaluate(workloads, local.cloud, out, refused, quiet=quiet, running=running)
    else:
        outcomes = _evaluate(workloads, invocation.open_cloud(), out, refused, quiet=quiet)
    if invocation.as_json:
        documents = [one.to_dict() for one in outcomes] + [one.to_dict() for one in refused]
        emit_json(documents[0] if len(documents) == 1 else documents)
    else:
        for outcome in outcomes:
            show_outcome(outcome)
    codes = [*(one.exit_code for one in outcomes), *(error_exit_code(one.error) for one in refused)]
    raise typer.Exit(worst_exit_code(codes))


def _readable(paths: Sequence[Path]) -> tuple[list[WorkloadFile], list[NotStarted]]:
    """The files that can be evaluated, and the others; raises the error where there is no other.

    Of files that name the same workload none can be: nothing says which one is meant.
    """
    outcomes = [outcome for path in paths for outcome in read_files([path])]
    readable = [one for _, one in outcomes if isinstance(one, WorkloadFile)]
    files, refused = list[WorkloadFile](), list[NotStarted]()
    for path, outcome in outcomes:
        if not isinstance(outcome, WorkloadFile):
            refused.append(NotStarted(path, outcome))
            continue
        name = outcome.workload.name
        twins = [file for file in readable if file.workload.name == name and file is not outcome]
        if twins:
            refused.append(NotStarted(path, same_name(outcome, twins[0].path), name))
        else:
            files.append(outcome)
    if not files:
        raise refused[0].error
    return files, refused


def _evaluate(
    files: Sequence[WorkloadFile],
    cloud: Cloud,
    out: Path,
    refused: list[NotStarted],
    *,
    quiet: bool,
    running: Sequence[str] = (),
) -> list[Outcome]:
    asked_for, others = start_or_go_on(files, running, cloud, refused)
    started = [*asked_for, *others]
    if not started:
        raise refused[0].error
    for refusal in refused:
        typer.echo(
            error_text(f"{refusal.file} was not started: {explained(refusal.error)}"), err=True
        )
    keeper = Keeper(cloud) if cloud.is_local else None
    look = keeper.look if keeper else None
    try:
        views = watch(started, cloud.poll_seconds, console(stderr=quiet), on_look=look)
    except (KeyboardInterrupt, BrokenPipeError) as error:
        # Local trials end with their cloud; those in AWS continue without this command.
        names = ", ".join(item.trial.workload for item in started)
        if cloud.is_local:
            stop(started, cloud)
            said = [f"Stopped {names}; nothing was decided, the flag is unchanged."]
        else:
            said = [f"No longer watching {names}; the trial continues in AWS. To stop it:"]
            said += [
                f"  aws stepfunctions stop-execution --execution-arn {item.arn}" for item in started
            ]
        typer.echo("\n".join(said), err=True)
        if isinstance(error, BrokenPipeError):  # what shows the progress has ended, as `head` does
            raise
        raise typer.Exit(STOPPED) from None
    finally:
        if keeper:  # the cloud ends, and what it holds with it
            keeper.end([item.trial for item in started])
    return [
        replace(
            read_outcome(view.trial, cloud, view.state, out),
            kept=keeper is None or view.trial in keeper.kept,
        )
        for view in views[: len(asked_for)]
    ]


def show_outcome(outcome: Outcome) -> None:
    """Verdict and headline, reasons, figures, where the report is."""
    decision = outcome.decision
    rows = map_optional(decision, lambda one: decision_rows(one, outcome.applied)) or []
    rows.append(("full runs", full_run_words(outcome.full_runs)))
    show("run", outcome.to_dict(), outcome=outcome, rows=rows, notes=said(outcome.notes))


REVERTED = 12

WaitOption = Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")]


@on_cloud
def train(invocation: Invocation, workload: NameArgument, *, wait: WaitOption = False) -> None:
    """Start one production run of a registered workload now.

    Trains the latest registration, with or without the compiler as the flag says. The run is
    recorded and monitored like a scheduled one.

    \b
    compilegate train article-bert
    compilegate train article-bert --wait --json
    compilegate train demo-lm --local --wait

    Exit code 0 started, with --wait also trained; 12 the run led to a revert; 1 the run failed;
    2 the workload is not registered, or is retired. Ctrl-C does not stop the run.
    """
    cloud = invocation.open_cloud()
    check_registered(workload, cloud, field="WORKLOAD")
    load_registered(workload, cloud.services.store)
    refuse_if_drained(cloud.services)
    run, arn = start_run(workload, cloud, time.time_ns() // 1_000_000)
    if not wait:
        started = {"workload": workload, "run": run, "execution": arn, "status": "RUNNING"}
        invocation.answer(started, "train_started")
        return
    try:
        # With --json, standard output is the document's alone.
        (view,) = watch(
            [RunWatcher(workload, run, arn, cloud)],
            cloud.poll_seconds, console(stderr=invocation.as_json), what="run",
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"No longer watching {workload}; run {run} continues.", err=True)
        raise typer.Exit(STOPPED) from None
    # The flag as production reads it; unlike a run, this repairs nothing.
    text = cloud.services.flags.read(naming.flag_parameter(cloud.stage, workload))
    try:
        flag, problem = parse_flag(text), None
    except InvalidInputError as error:
        flag, problem = OFF, f"malformed: {error}"
    begun, state = view.begun, view.state
    document = {
        "workload": view.trial.workload,
        "run": view.trial.trial,
        "execution": state.arn,
        "status": state.status,
        # Why its execution ended badly.
        "reason": (explain("", state.cause) if state.cause else state.error) or None,
        "arm": begun and begun.arm,
        "why": begun and begun.why,
        "attempts": [
            {key: value for key, value in asdict(run).items() if key != "at"} for run in view.runs
        ],
        "review": map_optional(view.review, Review.to_entry),
        "flag": {"problem": problem, **asdict(flag)},
    }
    invocation.answer(
        document, "train",
        view=view, run_reason=run_reason, metric_of=metric_of, wall_seconds_of=wall_seconds_of,
        flag_words=problem or on_words(flag),
    )  # fmt: skip
    raise typer.Exit(exit_code(view))


def start_run(workload: str, cloud: Cloud, milliseconds: int) -> tuple[str, str]:
    """Start the run of one moment (since 1970): its id and its execution."""
    moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    scheduled = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    run = naming.trial_id(milliseconds)
    payload = {"workload": workload, "scheduled": scheduled}
    executions = cloud.production.executions
    return run, executions.start(naming.execution_name(workload, run), payload)


def exit_code(view: View) -> int:
    """The run's exit code; a run without a model failed, however its execution ended."""
    if map_optional(view.review, lambda one: one.verdict) == Verdict.REVERT:
        return REVERTED
    trained = any(run.finished for run in view.runs)
    return 0 if trained and view.state.succeeded else FAILURE
