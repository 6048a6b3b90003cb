"""Starts trials, follows executions to their end, and stops them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from compilegate.adapters.bundle import package
from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.cli.check import read_files
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.own_compiling import notes_on
from compilegate.cli.trials.screen import screen
from compilegate.cli.trials.view import TrialView, TrialWatcher, View, Watcher
from compilegate.domain import naming
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.usecases.drain_mark import refuse_if_drained
from compilegate.usecases.records import Trial
from compilegate.usecases.registration import submit

STOP_CAUSE = "stopped with Ctrl-C"
STOP_SECONDS = 20.0
LOST_AFTER = 10
AWS_ERRORS = (BotoCoreError, ClientError, OSError)


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
    store, trial_id = cloud.services.store, naming.trial_id(time.time_ns() // 1_000_000)
    for file in files:
        read_workload(file.path, store=store)
    # With what the report of its trial has to say of its script.
    packages = [replace(package(file), notes=notes_on(file)) for file in files]
    trials = [submit(one, trial=trial_id, store=store) for one in packages]
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


def start_or_go_on(
    files: Sequence[WorkloadFile], running: Sequence[str], cloud: Cloud
) -> tuple[list[StartedTrial], list[StartedTrial]]:
    """The trials of these workloads in their order, and others that go on.

    ``running`` are executions of a local cloud that was killed and started again. A workload whose
    trial goes on is given no second one: the two would wait for each other.
    """
    started: dict[str, StartedTrial] = {}
    for arn in running:
        trial = Trial.from_event(cloud.executions.input_of(arn))
        started[trial.workload] = StartedTrial(trial, arn)
        name = naming.execution_name(trial.workload, trial.trial)
        typer.echo(
            f"The local cloud had been killed; {name} goes on, with the file and the code that it "
            "was started with.", err=True,
        )  # fmt: skip
    new = start([file for file in files if file.workload.name not in started], cloud)
    started |= {item.trial.workload: item for item in new}
    asked_for = [started.pop(file.workload.name) for file in files]
    return asked_for, list(started.values())


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


def watch(
    watchers: Sequence[Watcher[View]],
    poll_seconds: float,
    console: Console,
    *,
    what: str = "trial",
    on_end: Callable[[View], None] | None = None,
    on_look: Callable[[Sequence[View]], None] | None = None,
) -> list[View]:
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
            except AWS_ERRORS as error:
                lost += 1
                if lost >= LOST_AFTER:
                    raise EnvironmentNotReadyError(
                        f"the {what} can no longer be watched ({error}); it continues",
                        fix="see `compilegate status`",
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
        with contextlib.suppress(*AWS_ERRORS):
            cloud.executions.stop(item.arn, cause)
    names = [(item.trial.workload, item.trial.trial) for item in started]
    deadline = time.monotonic() + STOP_SECONDS
    with contextlib.suppress(*AWS_ERRORS):
        while time.monotonic() < deadline and any(
            naming.own_jobs(*name, cloud.services.jobs.active(naming.trial_job_prefix(*name)))
            for name in names
        ):
            time.sleep(0.2)
