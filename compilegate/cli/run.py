"""``compilegate run``: evaluate workloads, all at once, and show how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import STOPPED, worst_exit_code
from compilegate.cli.common.kept_cloud import Keeper
from compilegate.cli.common.outcome import Outcome, decision_rows, full_run_words, read_outcome
from compilegate.cli.common.output import console, emit_json
from compilegate.cli.common.session import REPORTS, Invocation, ReportsOption, on_cloud
from compilegate.cli.common.template import show
from compilegate.cli.trials.start import (
    StartedTrial,
    follow,
    interrupted,
    read_workloads,
    start_or_go_on,
    stop,
)
from compilegate.domain.notes import said


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

    Several files are evaluated at the same time. With --local, Ctrl-C stops the trials; in AWS
    they continue.

    Exit code 0 promote, 10 stay off or ineligible, 11 inconclusive, 13 invalid, 1 failure, also to
    write the report; of several the worst.
    """
    workloads = read_workloads(files)
    if invocation.local:
        progress = console(stderr=invocation.as_json)
        progress.print("Starting the embedded cloud if it does not run, deploying the app …")
        with invocation.session.providers.started_local(keep=False) as started:
            before = interrupted(started)
            quiet = invocation.as_json
            outcomes = _evaluate(workloads, started.cloud, out, quiet=quiet, before=before)
    else:
        outcomes = _evaluate(workloads, invocation.open_cloud(), out, quiet=invocation.as_json)
    if invocation.as_json:
        documents = [outcome.to_dict() for outcome in outcomes]
        emit_json(documents[0] if len(documents) == 1 else documents)
    else:
        for outcome in outcomes:
            show_outcome(outcome)
    raise typer.Exit(worst_exit_code([outcome.exit_code for outcome in outcomes]))


def _evaluate(
    files: Sequence[WorkloadFile],
    cloud: Cloud,
    out: Path,
    *,
    quiet: bool,
    before: Sequence[StartedTrial] = (),
) -> list[Outcome]:
    asked_for, others = start_or_go_on(files, before, cloud)
    started = [*asked_for, *others]
    keeper = Keeper(cloud) if cloud.is_local else None
    look = keeper.look if keeper else None
    try:
        views = follow(started, cloud, console(stderr=quiet), on_look=look)
    except KeyboardInterrupt:
        _stop_or_leave(started, cloud)
        raise typer.Exit(STOPPED) from None
    except BrokenPipeError:  # what shows the progress has ended, as `head` does
        _stop_or_leave(started, cloud)
        raise
    finally:
        if keeper:  # the cloud ends, and what it holds with it
            keeper.end([item.trial for item in started])
    outcomes = [read_outcome(v.trial, cloud, v.state, out) for v in views[: len(asked_for)]]
    return [
        replace(outcome, kept=keeper is None or view.trial in keeper.kept)
        for outcome, view in zip(outcomes, views, strict=False)
    ]


def _stop_or_leave(started: Sequence[StartedTrial], cloud: Cloud) -> None:
    """Local trials end with their cloud; those in AWS continue without this command."""
    names = ", ".join(item.trial.workload for item in started)
    if cloud.is_local:
        stop(started, cloud)
        typer.echo(f"Stopped {names}; nothing was decided, the flag is unchanged.", err=True)
        return
    typer.echo(f"No longer watching {names}; the trial continues in AWS. To stop it:", err=True)
    for item in started:
        typer.echo(f"  aws stepfunctions stop-execution --execution-arn {item.arn}", err=True)


def show_outcome(outcome: Outcome) -> None:
    """Verdict and headline, reasons, figures, where the report is."""
    decision = outcome.decision
    rows = [] if decision is None else decision_rows(decision, outcome.applied)
    rows.append(("full runs", full_run_words(outcome.full_runs)))
    show("run", outcome.to_dict(), outcome=outcome, rows=rows, notes=said(outcome.notes))
