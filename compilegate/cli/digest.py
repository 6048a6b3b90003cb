"""``compilegate digest``: the weekly summary of each owner, as of now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.report.fleet import render_fleet
from compilegate.usecases.operations.weekly_summary import digests, fleet


@on_cloud
def digest(
    invocation: Invocation,
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only this owner's workloads.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Save all workloads as one page and print its path."
        ),
    ] = None,
) -> None:
    """Show every owner's weekly summary of the last 7 days.

    \b
    compilegate digest
    compilegate digest --owner ml-platform --json
    compilegate digest --html fleet.html

    With --html, saves a page instead: what was saved, how each workload stands, what to do. With
    --json as well, prints the path as JSON.
    """
    cloud = invocation.open_cloud()
    if html is not None:
        write_whole(html, render_fleet(fleet(cloud.services, owner=owner)).encode())
        invocation.answer({"html": str(html)}, "path", path=html)
        return
    sent = [one.notification for one in digests(cloud.services, owner=owner)]
    messages = [one.message.splitlines() for one in sent]
    invocation.answer([one.body() for one in sent], "digest", messages=messages)
