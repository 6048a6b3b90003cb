"""Starts trials, follows executions to their end, and stops them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from compilegate.adapters.bundle import package
from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.cli.check import read_files
from compilegate.cli.common.cloud import Cloud, StartedCloud
from compilegate.cli.common.own_compiling import notes_on
from compilegate.cli.trials.screen import screen
from compilegate.cli.trials.view import TrialView, TrialWatcher
from compilegate.domain import naming
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, ProblemWithFix
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.records import Trial
from compilegate.usecases.registration import Package, submit

STOP_CAUSE = "stopped with Ctrl-C"
STOP_SECONDS = 20.0
LOST_AFTER = 10
View_co = TypeVar("View_co", bound=TrialView, covariant=True)


@dataclass(frozen=True)
class StartedTrial:
    """A trial with its execution."""

    trial: Trial
    arn: str


def read_workloads(paths: Sequence[Path]) -> list[WorkloadFile]:
    """Read every file before anything starts; raises InvalidInputError for the first wrong one."""
    files = []
    for _, outcome in read_files(paths):
        if isinstance(outcome, InvalidInputError):
            raise outcome
        files.append(outcome)
    return files


def start(files: Sequence[WorkloadFile], cloud: Cloud) -> list[StartedTrial]:
    """Upload every workload, then start their executions; all of them or none.

    Raises DrainedError, before anything is uploaded, while the deployment is drained.
    """
    refuse_if_drained(cloud.services)
    for file in files:
        read_workload(file.path, store=cloud.services.store)
    trial_id = naming.trial_id(time.time_ns() // 1_000_000)
    trials = [submit(_package(file), trial=trial_id, store=cloud.services.store) for file in files]
    started: list[StartedTrial] = []
    try:
        for trial in trials:
            name = naming.execution_name(trial.workload, trial.trial)
            payload = {
                "workload": trial.workload, "trial": trial.trial, "spec_key": trial.spec_key,
            }  # fmt: skip
            started.append(StartedTrial(trial, cloud.executions.start(name, payload)))
    except BaseException:
        stop(started, cloud, "another trial of the same command could not start")
        raise
    return started


def _package(file: WorkloadFile) -> Package:
    """The file's package with what the report of its trial has to say of its script."""
    return replace(package(file), notes=notes_on(file))


def follow(
    started: Sequence[StartedTrial],
    cloud: Cloud,
    console: Console,
    *,
    on_end: Callable[[TrialView], None] | None = None,
    on_look: Callable[[Sequence[TrialView]], None] | None = None,
) -> list[TrialView]:
    """Show progress until every execution has ended; returns the last view of each."""
    watchers = [TrialWatcher(item.trial, item.arn, cloud) for item in started]
    return watch(watchers, cloud.poll_seconds, console, on_end=on_end, on_look=on_look)


class Watcher(Protocol[View_co]):
    """Reads one execution again and again."""

    def read(self) -> View_co:
        """As it is now."""
        ...


def watch(
    watchers: Sequence[Watcher[View_co]],
    poll_seconds: float,
    console: Console,
    *,
    what: str = "trial",
    on_end: Callable[[View_co], None] | None = None,
    on_look: Callable[[Sequence[View_co]], None] | None = None,
) -> list[View_co]:
    """Show progress until every execution has ended; returns the last view of each.

    ``on_look`` gets the views each time, ``on_end`` the last view of each once it has ended.
    Raises EnvironmentNotReadyError after ten failures in a row to read them.
    """
    lost, ended = 0, set[int]()
    with screen(console) as show:
        while True:
            try:
                views = [watcher.read() for watcher in watchers]
                lost = 0
            except (BotoCoreError, ClientError, OSError) as error:
                lost += 1
                if lost >= LOST_AFTER:
                    raise EnvironmentNotReadyError(
                        ProblemWithFix(
                            f"the {what} can no longer be watched ({error}); it continues",
                            fix="see `compilegate status`",
                        )
                    ) from error
            else:
                show(views)
                if on_look:
                    on_look(views)
                for number, view in enumerate(views):
                    if on_end and not view.state.running and number not in ended:
                        ended.add(number)
                        on_end(view)
                if not any(view.state.running for view in views):
                    return views
            time.sleep(poll_seconds)


def stop(started: Sequence[StartedTrial], cloud: Cloud, cause: str = STOP_CAUSE) -> None:
    """Stop the executions and wait a moment for their jobs to end."""
    for item in started:
        with contextlib.suppress(BotoCoreError, ClientError, OSError):
            cloud.executions.stop(item.arn, cause)
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and _any_job_active(started, cloud):
        time.sleep(0.2)


def _any_job_active(started: Sequence[StartedTrial], cloud: Cloud) -> bool:
    try:
        return any(
            naming.own_jobs(
                item.trial.workload,
                item.trial.trial,
                cloud.services.jobs.active(
                    naming.trial_job_prefix(item.trial.workload, item.trial.trial)
                ),
            )
            for item in started
        )
    except (BotoCoreError, ClientError, OSError):
        return False


# Trials that ran in a local cloud when it was killed: who starts it again follows them.


def interrupted(started: StartedCloud) -> list[StartedTrial]:
    """Trials that go on because this command started their cloud again."""
    executions = started.cloud.executions
    arns = executions.running_arns() if started.started_now and started.resumed else ()
    return [StartedTrial(Trial.from_event(executions.input_of(arn)), arn) for arn in arns]


def start_or_go_on(
    files: Sequence[WorkloadFile], before: Sequence[StartedTrial], cloud: Cloud
) -> tuple[list[StartedTrial], list[StartedTrial]]:
    """The trials of these workloads in their order, and others that go on.

    A workload whose trial goes on is given no second one: the two would wait for each other.
    """
    going_on = {item.trial.workload: item for item in before}
    for item in before:
        name = naming.execution_name(item.trial.workload, item.trial.trial)
        typer.echo(
            f"The local cloud had been killed; {name} goes on, with the file and the code that it "
            "was started with.", err=True,
        )  # fmt: skip
    new = start([file for file in files if file.workload.name not in going_on], cloud)
    started = going_on | {item.trial.workload: item for item in new}
    asked_for = [started.pop(file.workload.name) for file in files]
    return asked_for, list(started.values())
