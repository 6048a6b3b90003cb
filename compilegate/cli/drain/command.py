"""``compilegate drain``: let nothing new start, and wait until nothing runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import STOPPED, session
from compilegate.cli.common.options import JsonOption, LocalOption, StageOption
from compilegate.cli.common.output import YesOption, confirm, console, emit_json, say
from compilegate.cli.common.providers import Providers, open_cloud
from compilegate.cli.drain.screen import Report, show_check, show_drained, show_undone
from compilegate.domain.draining import next_steps
from compilegate.domain.errors import InvalidInputError, NotDeployedError
from compilegate.domain.naming import stack_name
from compilegate.domain.records.flags import HUMAN
from compilegate.usecases.operations.drain import Deployment, Drainage, begin_drain, end_drain
from compilegate.usecases.operations.drain_mark import drain_mark

# Of the contract's codes the one that says: not over yet.
STILL_RUNNING = 11

CheckOption = Annotated[
    bool, typer.Option("--check", help="Only say whether anything runs; changes nothing.")
]
UndoOption = Annotated[
    bool, typer.Option("--undo", help="Let work start again; enables the schedules.")
]
StopJobsOption = Annotated[
    bool,
    typer.Option("--stop-jobs", help="Stop production's training jobs too; they end unfinished."),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="MINUTES", min=0, help="Wait no longer than this."),
]


def drain(
    ctx: typer.Context,
    *,
    check: CheckOption = False,
    undo: UndoOption = False,
    stop_jobs: StopJobsOption = False,
    timeout: TimeoutOption = None,
    yes: YesOption = False,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop trials, let nothing new start, and wait until no job runs.

    Schedules are disabled, and run, train and register are refused. Trials and production runs
    that wait for machines are stopped and their leases released. Production runs that train end
    by themselves, unless --stop-jobs stops them. Flags stay as they are.

    \b
    compilegate drain
    compilegate drain --stop-jobs --timeout 30 --yes
    compilegate drain --check
    compilegate drain --undo

    Exit code 0 nothing runs, 11 something still runs (--check, --timeout), 1 failure. Repeating
    the command goes on where it ended; Ctrl-C stops the waiting, and nothing starts until --undo.
    """
    if check and undo:
        raise InvalidInputError(
            "cannot be used together", field="--check and --undo", fix="choose one"
        )
    name = project.stage_name(stage)
    if check:
        raise typer.Exit(_check(session(ctx).providers, name, local=local, as_json=as_json))
    cloud = open_cloud(session(ctx).providers, local=local, stage=name)
    deployment, by = _deployment(cloud), f"{HUMAN}{cloud.who()}"
    if undo:
        show_undone(stack_name(_stage(cloud)), end_drain(deployment, by), as_json=as_json)
        return
    confirm(_warning(stack_name(_stage(cloud)), stop_jobs=stop_jobs), yes=yes, as_json=as_json)
    report = _drain(
        deployment, by, stop_jobs=stop_jobs, minutes=timeout, poll=cloud.poll_seconds,
        quiet=as_json,
    )  # fmt: skip
    if as_json:
        emit_json(report.document(_stage(cloud)))
    else:
        show_drained(report, stack_name(_stage(cloud)), local=cloud.is_local)
    raise typer.Exit(0 if report.work.idle else STILL_RUNNING)


def _stage(cloud: Cloud) -> str:
    return cloud.services.settings.stage


def _deployment(cloud: Cloud) -> Deployment:
    production = cloud.with_production()
    return Deployment(
        services=cloud.services,
        trials=cloud.executions,
        runs=production.executions,
        schedules=production.schedules,
        leases=lambda: [(lock.workload, lock.owner) for lock in cloud.overview.locks()],
    )


def _check(providers: Providers, stage: str, *, local: bool, as_json: bool) -> int:
    """A stage without a stack has nothing that could run."""
    try:
        cloud = open_cloud(providers, local=local, stage=stage)
    except NotDeployedError as error:
        if as_json:
            emit_json({"stage": stage, "deployed": False, "idle": True})
        else:
            say(f"Nothing runs. {error}")
        return 0
    deployment = _deployment(cloud)
    work = Drainage(deployment, time.monotonic).look()
    mark, enabled = drain_mark(cloud.services), tuple(deployment.schedules.enabled())
    report = Report(work=work, enabled=enabled, mark=mark)
    if as_json:
        emit_json(report.document(_stage(cloud)))
    else:
        show_check(report, stack_name(_stage(cloud)))
    return 0 if report.may_be_removed else STILL_RUNNING


def _warning(stack: str, *, stop_jobs: bool) -> list[str]:
    jobs = "is stopped as well" if stop_jobs else "is waited for"
    return [
        f"Draining {stack}: schedules are disabled and nothing new starts until `compilegate "
        "drain --undo`. Running trials are stopped and have to be run again. What production "
        f"trains {jobs}. Flags stay as they are."
    ]


def _drain(
    deployment: Deployment,
    by: str,
    *,
    stop_jobs: bool,
    minutes: float | None,
    poll: float,
    quiet: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    mark = begin_drain(deployment, by)
    report, drainage = Report(mark=mark), Drainage(deployment, time.monotonic)
    deadline = None if minutes is None else time.monotonic() + minutes * 60
    try:
        while True:
            report.work = drainage.look()
            _tell(report, quiet=quiet)
            if report.work.idle:
                return report
            steps = next_steps(report.work, stop_jobs=stop_jobs)
            drainage.take(steps)
            report.note(steps)
            if deadline is not None and time.monotonic() >= deadline:
                return report
            sleep(poll)
    except KeyboardInterrupt:
        typer.echo(
            "Stopped waiting. Nothing new starts; go on with: compilegate drain\n"
            "Let work start again with: compilegate drain --undo",
            err=True,
        )
        raise typer.Exit(STOPPED) from None


def _tell(report: Report, *, quiet: bool) -> None:
    """A line whenever what runs has changed; with --json standard output is the document's."""
    line = report.progress()
    if line is not None:
        console(stderr=quiet).print(line, soft_wrap=True)
