"""``compilegate status``: running trials, locks, approvals, production, last decisions."""

from __future__ import annotations

from typing import Annotated

import typer

from compilegate.cli.common.completion import workload_names
from compilegate.cli.common.output import emit_json
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.cli.status.rows import read_status
from compilegate.cli.status.screen import show_status


@on_cloud
def status(
    invocation: Invocation,
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD", help="Only this workload.", autocompletion=workload_names
        ),
    ] = None,
) -> None:
    """Show trials, locks, approvals, runs and decisions.

    Running trials, locks, pending approvals, production runs and the last decisions.

    \b
    compilegate status
    compilegate status bert-docs --json
    """
    stage_status = read_status(invocation.open_records(), workload)
    if invocation.as_json:
        emit_json(stage_status.to_dict())
    else:
        show_status(stage_status)
