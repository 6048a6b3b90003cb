"""Trials that ran in a local cloud when it was killed: who starts it again follows them."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import Cloud, StartedCloud
from compilegate.cli.trials.start import StartedTrial, start
from compilegate.domain import naming
from compilegate.usecases.records import Trial


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
