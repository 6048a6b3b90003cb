"""``compilegate status``: running trials, locks, approvals, production, last decisions."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from compilegate.cli.common.completion import workload_names
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.cli.status.rows import read_status
from compilegate.domain.claims import run_reason


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
    document = read_status(invocation.open_records(), workload)
    invocation.answer(document, "status", now=time.time(), run_reason=run_reason)
