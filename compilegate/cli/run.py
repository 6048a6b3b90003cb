"""``compilegate run``: evaluate workloads, all at once, and say how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from compilegate.adapters.workload_files import WorkloadFile
from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import STOPPED, session
from compilegate.cli.common.figures import (
    flag_words,
    full_run_words,
    quality_words,
    saving_words,
    speedup_words,
)
from compilegate.cli.common.options import (
    REPORTS,
    JsonOption,
    LocalOption,
    ReportsOption,
    StageOption,
    WorkloadFiles,
)
from compilegate.cli.common.outcome import Outcome, read_outcome, worst_exit_code
from compilegate.cli.common.output import (
    console,
    emit_json,
    one_or_many,
    reason_lines,
    say,
    say_line,
    say_verdict,
)
from compilegate.cli.trials.start import StartedTrial, follow, read_workloads, start, stop


def run(
    ctx: typer.Context,
    files: WorkloadFiles,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Evaluate workloads: measure, judge, set the flag, report.

    \b
    compilegate run workloads/article-bert.yaml
    compilegate run workloads/demo-lm.yaml workloads/demo-tabular.yaml --local

    Several files are evaluated at the same time. Exit code 0 promote, 10 stay off or
    ineligible, 11 inconclusive, 13 invalid, 1 failure; of several the worst.

    With --local, Ctrl-C stops the trials; against AWS it only stops watching them.
    """
    workloads = read_workloads(files)
    providers = session(ctx).providers
    if local:
        progress = console(stderr=as_json)
        progress.print("Starting the embedded cloud if it does not run, deploying the app …")
        with providers.started_local(keep=False) as started:
            outcomes = _evaluate(workloads, started.cloud, out, quiet=as_json)
    else:
        cloud = providers.aws(project.stage_name(stage))
        outcomes = _evaluate(workloads, cloud, out, quiet=as_json)
    if as_json:
        emit_json(one_or_many([outcome.to_dict() for outcome in outcomes]))
    else:
        for outcome in outcomes:
            show_outcome(outcome)
    raise typer.Exit(worst_exit_code([outcome.exit_code for outcome in outcomes]))


def _evaluate(
    files: Sequence[WorkloadFile], cloud: Cloud, out: Path, *, quiet: bool
) -> list[Outcome]:
    started = start(files, cloud)
    try:
        # With --json, standard output is the document's alone.
        views = follow(started, cloud, console(stderr=quiet))
    except KeyboardInterrupt:
        _leave(started, cloud)
        raise typer.Exit(STOPPED) from None
    return [read_outcome(view.trial, cloud, view.state, out) for view in views]


def _leave(started: Sequence[StartedTrial], cloud: Cloud) -> None:
    """Ctrl-C: local trials end with their cloud; those in AWS are the team's, and go on."""
    names = ", ".join(item.trial.workload for item in started)
    if cloud.is_local:
        stop(started, cloud)
        typer.echo(f"Stopped {names}; nothing was decided, the flag is as it was.", err=True)
        return
    typer.echo(f"No longer watching {names}; the trial goes on in AWS. To stop it:", err=True)
    for item in started:
        typer.echo(f"  aws stepfunctions stop-execution --execution-arn {item.arn}", err=True)


def show_outcome(outcome: Outcome) -> None:
    """Verdict and headline, reasons, figures, where the report is."""
    say()
    say_verdict(outcome.workload, outcome.verdict, outcome.verdict)
    say(f"{outcome.headline}.".replace("..", "."), indent=2)
    if outcome.decision is None:
        if not outcome.missing:
            say("Nothing was decided; the flag is as it was.", indent=2)
        _show_missing(outcome)
        return
    reason_lines(outcome.decision["reasons"])
    for name, value in (
        ("speed-up", speedup_words(outcome.decision)),
        ("quality", quality_words(outcome.decision)),
        ("saving", saving_words(outcome.decision)),
        ("flag", flag_words(outcome.decision, outcome.applied)),
        ("full runs", full_run_words(outcome.full_runs)),
    ):
        if value:
            say(f"{name:<9} {value}", indent=2)
    if outcome.report is not None:
        say_line(f"  report    {outcome.report}")
    _show_missing(outcome)


def _show_missing(outcome: Outcome) -> None:
    for item in outcome.missing:
        say(item.message, indent=2)
        if item.command:
            say_line(f"    {item.command}")
