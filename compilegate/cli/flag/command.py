"""``compilegate flag``: what production training reads, how it changed, and changes by hand."""

from __future__ import annotations

import typer

from compilegate.cli.common.cloud import check_workload_exists
from compilegate.cli.common.help import CommandGroup
from compilegate.cli.common.session import (
    Invocation,
    NameArgument,
    on_cloud,
)
from compilegate.cli.flag import approval, by_hand
from compilegate.cli.flag.status import WORDS, flag_screen, on_words
from compilegate.usecases.flag.change_flag import flag_versions, latest_flag, repair_flag

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def flag() -> None:
    """Show a workload's flag and its history, or change it."""


@app.command("show")
@on_cloud
def show(
    invocation: Invocation,
    workload: NameArgument,
) -> None:
    """Show a workload's flag, since when it holds, and why.

    \b
    compilegate flag show bert-docs
    compilegate flag show bert-docs --local --json
    """
    cloud = invocation.open_records()
    document, beside = flag_screen(workload, cloud.services)
    if not document["set"] and document["change"] is None:
        check_workload_exists(workload, cloud)
    invocation.answer(document, "flag_show", **beside, cloud=cloud)


@app.command("history")
@on_cloud
def history(
    invocation: Invocation,
    workload: NameArgument,
) -> None:
    """Show every change of a workload's flag, newest first.

    With author, reason and evidence.

    \b
    compilegate flag history bert-docs
    compilegate flag history bert-docs --json
    """
    cloud = invocation.open_records()
    changes = flag_versions(workload, cloud.services)[::-1]
    if not changes:
        check_workload_exists(workload, cloud)
    invocation.answer(
        [version.to_entry() for version in changes], "flag_history", workload=workload,
        versions=changes, bucket=cloud.services.store.bucket, **WORDS,
    )  # fmt: skip


@app.command("repair")
@on_cloud
def repair(
    invocation: Invocation,
    workload: NameArgument,
) -> None:
    """Restore a lost or edited parameter from the ledger.

    \b
    compilegate flag repair bert-docs
    compilegate flag repair bert-docs --local --json
    """
    cloud = invocation.open_cloud()
    check_workload_exists(workload, cloud)
    repaired = repair_flag(workload, cloud.services)
    current, version = latest_flag(workload, cloud.services)
    document = {
        "workload": workload, "repaired": repaired, "version": version,
        "enabled": current.enabled, "state": current.state,
    }  # fmt: skip
    invocation.answer(document, "flag_repair", now=on_words(current))


app.command("set")(by_hand.set_flag)
app.command("revert")(by_hand.revert)
app.command("approve", help=approval.APPROVE_HELP)(approval.answer_command(approved=True))
app.command("reject", help=approval.REJECT_HELP)(approval.answer_command(approved=False))
