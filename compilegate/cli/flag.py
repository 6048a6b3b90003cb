"""``compilegate flag``: what production training reads, and how it got there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from compilegate.cli import project
from compilegate.cli.doors import open_cloud
from compilegate.cli.options import JsonOption, LocalOption, StageOption
from compilegate.cli.output import emit_json, say, say_line
from compilegate.cli.shell import session
from compilegate.domain import naming
from compilegate.domain.flag import Flag, parse_flag
from compilegate.usecases.change_flag import flag_history

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
NameArgument = Annotated[str, typer.Argument(metavar="WORKLOAD", help="The workload's name.")]


@app.callback()
def flag() -> None:
    """Show a workload's compiler flag and its history."""


@app.command("show")
def show(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what production training of a workload is told today.

    \b
    compilegate flag show bert-docs
    compilegate flag show bert-docs --local --json
    """
    cloud = open_cloud(session(ctx).doors, local=local, stage=project.stage_name(stage))
    services = cloud.services
    name = naming.flag_parameter(services.settings.stage, workload)
    raw = services.flags.read(name)
    found = parse_flag(raw)
    if as_json:
        document = {
            "name": name, "set": raw is not None, "enabled": found.enabled, "state": found.state,
            "candidate": found.candidate, "overrides": dict(found.overrides),
            "decision_id": found.decision_id, "since": found.since,
        }  # fmt: skip
        emit_json(document)
        return
    say(f"{workload}: {'on' if found.enabled else 'off'} ({_why(found, raw)})")
    for key, value in found.overrides.items():
        say(f"{key:<16} {value}", indent=2)
    if found.decision_id:
        say(f"decision {found.decision_id}, since {found.since}", indent=2)
    say_line(f"  {name}")


@app.command("history")
def history(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every change of a workload's flag, newest first, with the decision behind it.

    \b
    compilegate flag history bert-docs
    compilegate flag history bert-docs --json
    """
    cloud = open_cloud(session(ctx).doors, local=local, stage=project.stage_name(stage))
    changes = flag_history(workload, cloud.services)[::-1]
    if as_json:
        emit_json(changes)
        return
    if not changes:
        say(f"{workload}: the flag has never been changed; production trains as it always did.")
    for entry in changes:
        say(_change(entry))
        say(str(entry["reason"]), indent=2)
        if entry["decision_id"]:
            trial = f", trial {entry['trial']}" if entry.get("trial") else ""
            say(f"decision {entry['decision_id']}{trial}", indent=2)


def _why(found: Flag, raw: str | None) -> str:
    if raw is None:
        return "never set: production trains as it always did"
    return f"{found.state}, candidate {found.candidate}" if found.candidate else found.state


def _change(entry: Mapping[str, Any]) -> str:
    before, after = parse_flag(entry["from"]), parse_flag(entry["to"])
    words = ["on" if flag.enabled else "off" for flag in (before, after)]
    moment = f"{datetime.fromtimestamp(entry['at'], tz=UTC):%Y-%m-%d %H:%M} UTC"
    candidate = f", candidate {after.candidate}" if after.candidate else ""
    return f"{moment}  {words[0]} -> {words[1]}{candidate}, by {entry['by']}"
