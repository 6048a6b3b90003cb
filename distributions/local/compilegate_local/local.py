"""``compilegate local``: start, stop and inspect the embedded cloud."""

from __future__ import annotations

import shlex
import time
from typing import Annotated

import typer

from compilegate.cli.common.help_layout import CommandGroup
from compilegate.cli.common.output import answer, emit_json
from compilegate.cli.common.session import JsonOption
from compilegate_local import TEMPLATES

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
FOLLOW_SECONDS = 0.5


@app.callback()
def local() -> None:
    """Start, stop and inspect the embedded cloud."""


@app.command("up")
def up(*, as_json: JsonOption = False) -> None:
    """Start the embedded cloud unless it runs; deploy the app.

    \b
    compilegate local up
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    result = local_cloud.up()
    document = {
        "endpoint": result.state.endpoint,
        "pid": result.state.pid,
        "started_now": result.started_now,
        "resumed": result.state.resumed,
        "outputs": result.outputs,
        "seconds": {
            "start": round(result.start_seconds, 2),
            "synth": round(result.synth_seconds, 2),
            "deploy": round(result.deploy_seconds, 2),
        },
    }
    stacks = [stack.name for stack in result.stacks]
    answer(document, TEMPLATES / "local_up", as_json=as_json, stacks=stacks)


@app.command("down")
def down(*, as_json: JsonOption = False) -> None:
    """Stop the embedded cloud and delete its data.

    Everything that it started stops too.

    \b
    compilegate local down
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    answer({"stopped": local_cloud.down()}, TEMPLATES / "local_down", as_json=as_json)


@app.command("status")
def status(*, as_json: JsonOption = False) -> None:
    """Show whether the embedded cloud runs, where, and what is deployed.

    \b
    compilegate local status
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    cloud = local_cloud.status()
    state = cloud.state
    document = {
        "running": state is not None,
        "endpoint": None if state is None else state.endpoint,
        "pid": None if state is None else state.pid,
        "outputs": cloud.outputs,
        "home": str(cloud.home),
        "logs": list(cloud.log_parts),
    }
    minutes = max(time.time() - state.started_at, 0) / 60 if state else 0
    answer(document, TEMPLATES / "local_status", as_json=as_json, minutes=minutes)


@app.command("env")
def env(*, as_json: JsonOption = False) -> None:
    """Print the variables that aim other tools at the embedded cloud.

    The secret key among them allows everything there.

    \b
    compilegate local env --json
    eval "$(compilegate local env)" && aws s3 ls
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    variables = local_cloud.environment()
    if as_json:
        emit_json(variables)
        return
    typer.echo(f"unset {' '.join(local_cloud.OTHER_CREDENTIALS)}")
    for name, value in variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


@app.command("logs")
def logs(
    part: Annotated[
        str | None, typer.Argument(metavar="PART", help="The log. Default: list them.")
    ] = None,
    *,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Only the last N lines.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the log of one part: emulator, lambda/…, job/…, execution/….

    \b
    compilegate local logs
    compilegate local logs emulator --last 50
    compilegate local logs job/cg-demo-lm-0mabc123-s0-r0 --follow
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    if part is None:
        answer(list(local_cloud.status().log_parts), TEMPLATES / "local_logs", as_json=as_json)
        return
    log = local_cloud.logs(part)
    lines = log.lines[-last:] if last else log.lines
    if as_json:
        emit_json({"part": log.part, "path": str(log.path), "lines": list(lines)})
        return
    for line in lines:
        typer.echo(line)
    shown = len(log.lines)
    while follow:
        time.sleep(FOLLOW_SECONDS)
        grown = local_cloud.logs(log.part).lines
        for line in grown[shown:]:
            typer.echo(line)
        shown = len(grown)
