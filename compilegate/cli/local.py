"""``compilegate local``: start, stop and inspect the embedded cloud."""

from __future__ import annotations

import shlex
import time
from typing import Annotated

import typer

from compilegate.cli.common.help import CommandGroup
from compilegate.cli.common.output import emit_json, say, say_line
from compilegate.cli.common.session import JsonOption

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
    if as_json:
        emit_json(
            {
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
        )
        return
    verb = "started" if result.started_now else "was running already"
    say(f"The local cloud {verb} at {result.state.endpoint} (process {result.state.pid}).")
    if result.started_now and result.state.resumed:
        say("It had been killed and goes on where it was; see: compilegate status --local")
    stacks = ", ".join(stack.name for stack in result.stacks)
    say(
        f"Deployed {stacks}: start {result.start_seconds:.1f} s beside synthesis "
        f"{result.synth_seconds:.1f} s, deploy {result.deploy_seconds:.1f} s."
    )
    say("Next: compilegate run FILE --local. To stop it: compilegate local down")


@app.command("down")
def down(*, as_json: JsonOption = False) -> None:
    """Stop the embedded cloud and delete its data.

    Everything that it started stops too.

    \b
    compilegate local down
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    stopped = local_cloud.down()
    if as_json:
        emit_json({"stopped": stopped})
    else:
        say("The local cloud has stopped." if stopped else "No local cloud was running.")


@app.command("status")
def status(*, as_json: JsonOption = False) -> None:
    """Show whether the embedded cloud runs, where, and what is deployed.

    \b
    compilegate local status
    """
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    cloud = local_cloud.status()
    if as_json:
        state = cloud.state
        emit_json(
            {
                "running": state is not None,
                "endpoint": state.endpoint if state else None,
                "pid": state.pid if state else None,
                "outputs": cloud.outputs,
                "home": str(cloud.home),
                "logs": list(cloud.log_parts),
            }
        )
        return
    if cloud.state is None:
        say("The local cloud does not run. Start it with: compilegate local up")
    else:
        age = max(time.time() - cloud.state.started_at, 0) / 60
        say(
            f"The local cloud runs at {cloud.state.endpoint} (process {cloud.state.pid}, "
            f"for {age:.0f} min)."
        )
        for name, value in sorted((cloud.outputs or {}).items()):
            say_line(f"  {name:<22} {value}")
        if cloud.outputs is None:
            say("The app is not deployed. Deploy it with: compilegate local up")
    say_line(f"Files: {cloud.home}")
    if cloud.log_parts:
        say(f"{len(cloud.log_parts)} logs; list them with: compilegate local logs")


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
    say_line(f"unset {' '.join(local_cloud.OTHER_CREDENTIALS)}")
    for name, value in variables.items():
        say_line(f"export {name}={shlex.quote(value)}")


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
    if part is None:
        _list_logs(as_json=as_json)
    else:
        _show_log(part, last, follow=follow, as_json=as_json)


def _list_logs(*, as_json: bool) -> None:
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    parts = local_cloud.status().log_parts
    if as_json:
        emit_json(list(parts))
        return
    for name in parts:
        say_line(name)
    if not parts:
        say("There are no logs: the local cloud has not run.")


def _show_log(part: str, last: int | None, *, follow: bool, as_json: bool) -> None:
    from compilegate_localcloud import api as local_cloud  # noqa: PLC0415 - brings boto3

    log = local_cloud.logs(part)
    lines = log.lines[-last:] if last else log.lines
    if as_json:
        emit_json({"part": log.part, "path": str(log.path), "lines": list(lines)})
        return
    for line in lines:
        say_line(line)
    shown = len(log.lines)
    while follow:
        time.sleep(FOLLOW_SECONDS)
        grown = local_cloud.logs(log.part).lines
        for line in grown[shown:]:
            say_line(line)
        shown = len(grown)
