"""``compilegate train``: one production run, by hand."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED, session
from compilegate.cli.common.options import JsonOption, LocalOption, StageOption
from compilegate.cli.common.output import console, emit_json, say, say_line
from compilegate.cli.common.providers import open_cloud
from compilegate.cli.common.workload_names import check_registered
from compilegate.cli.train.screen import show_run
from compilegate.cli.trials.run_view import RunView, RunWatcher
from compilegate.cli.trials.watching import watch
from compilegate.domain import naming
from compilegate.domain.decision import Verdict
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import parse_flag
from compilegate.domain.production.next_arm import MALFORMED, FlagReading
from compilegate.domain.records.runs import ProductionRun
from compilegate.ports import Services
from compilegate.usecases.operations.drain_mark import refuse_if_drained
from compilegate.usecases.registration.load import load_registered

REVERTED = 12

NameArgument = Annotated[str, typer.Argument(metavar="WORKLOAD", help="A registered workload.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")]


def train(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    wait: WaitOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start one production run of a registered workload now.

    It trains what was registered last, with or without the compiler as the flag says, and is
    recorded and watched like a run on a schedule.

    \b
    compilegate train article-bert
    compilegate train article-bert --wait --json
    compilegate train demo-lm --local --wait

    Exit code 0 started, with --wait also trained; 12 the run made the flag revert; 1 the run
    failed; 2 the workload is not registered or retired. Ctrl-C stops the watching, not the run.
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    check_registered(workload, cloud, field="WORKLOAD")
    load_registered(workload, cloud.services.store)
    refuse_if_drained(cloud.services)
    run, arn = start_run(workload, cloud, time.time_ns() // 1_000_000)
    if not wait:
        _say_started(workload, run, arn, as_json=as_json)
        return
    try:
        # With --json, standard output is the document's alone.
        (view,) = watch(
            [RunWatcher(workload, run, arn, cloud)],
            cloud.poll_seconds, console(stderr=as_json), what="run",
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(f"No longer watching {workload}; run {run} goes on.", err=True)
        raise typer.Exit(STOPPED) from None
    reading = _flag(workload, cloud.services)
    if as_json:
        emit_json(document(view, reading))
    else:
        show_run(view, reading)
    raise typer.Exit(exit_code(view))


def start_run(workload: str, cloud: Cloud, milliseconds: int) -> tuple[str, str]:
    """Start the run of one moment (since 1970): its id and its execution."""
    moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    scheduled = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    run = naming.trial_id(milliseconds)
    payload = {"workload": workload, "scheduled": scheduled}
    executions = cloud.with_production().executions
    return run, executions.start(naming.execution_name(workload, run), payload)


def _say_started(workload: str, run: str, arn: str, *, as_json: bool) -> None:
    if as_json:
        emit_json({"workload": workload, "run": run, "execution": arn, "status": "RUNNING"})
        return
    say(f"{workload}: run {run} has started.")
    say_line(f"  {arn}")


def _flag(workload: str, services: Services) -> FlagReading:
    """What production is told now; unlike a run, a look repairs nothing."""
    text = services.flags.read(naming.flag_parameter(services.settings.stage, workload))
    try:
        return FlagReading(parse_flag(text), text)
    except InvalidInputError as error:
        return FlagReading(text=text, problem=MALFORMED, explanation=f"malformed: {error}")


def document(view: RunView, reading: FlagReading) -> dict[str, Any]:
    """The run for programs."""
    begun = view.begun
    return {
        "workload": view.trial.workload,
        "run": view.trial.trial,
        "execution": view.state.arn,
        "status": view.state.status,
        "reason": view.state.cause or view.state.error or None,
        "arm": begun and begun.arm,
        "why": begun and begun.why,
        "attempts": [_attempt(run) for run in view.runs],
        "watch": view.review and view.review.to_entry(),
        "flag": {"told": reading.explanation, **asdict(reading.flag)},
    }


def _attempt(run: ProductionRun) -> dict[str, Any]:
    return {key: value for key, value in asdict(run).items() if key != "at"}


def exit_code(view: RunView) -> int:
    """What the run came to; a run without a model failed, however its execution ended."""
    if view.review is not None and view.review.verdict == Verdict.REVERT:
        return REVERTED
    trained = any(run.finished for run in view.runs)
    return 0 if trained and view.state.status == "SUCCEEDED" else FAILURE
