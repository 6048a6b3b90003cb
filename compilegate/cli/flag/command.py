"""``compilegate flag``: what production training reads, how it got there, and a person's word."""

from __future__ import annotations

import typer

from compilegate.cli.common import project
from compilegate.cli.common.error_handling import session
from compilegate.cli.common.options import JsonOption, LocalOption, NameArgument, StageOption
from compilegate.cli.common.output import emit_json
from compilegate.cli.common.providers import open_cloud
from compilegate.cli.common.workload_names import check_workload_exists
from compilegate.cli.flag import approval as flag_approval
from compilegate.cli.flag import by_hand as flag_by_hand
from compilegate.cli.flag.screen import show_history, show_status
from compilegate.cli.flag.status import flag_status
from compilegate.usecases.flag.change_flag import flag_versions

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def flag() -> None:
    """Show a workload's compiler flag and its history, or change it by hand."""


@app.command("show")
def show(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what production training of a workload is told today, since when, and why.

    \b
    compilegate flag show bert-docs
    compilegate flag show bert-docs --local --json
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    status = flag_status(workload, cloud.services)
    if not status.present and status.change is None:
        check_workload_exists(workload, cloud)
    if as_json:
        emit_json(status.to_dict())
    else:
        show_status(status, local=cloud.is_local)


@app.command("history")
def history(
    ctx: typer.Context,
    workload: NameArgument,
    *,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every change of a workload's flag, newest first: who, what, why, on what evidence.

    \b
    compilegate flag history bert-docs
    compilegate flag history bert-docs --json
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    changes = flag_versions(workload, cloud.services)[::-1]
    if not changes:
        check_workload_exists(workload, cloud)
    if as_json:
        emit_json([version.to_entry() for version in changes])
    else:
        show_history(workload, changes, bucket=cloud.services.store.bucket)


app.command("set")(flag_by_hand.set_flag)
app.command("revert")(flag_by_hand.revert)
app.command("repair")(flag_by_hand.repair)
app.command("approve")(flag_approval.approve)
app.command("reject")(flag_approval.reject)
