"""``compilegate digest``: the weekly summary of each owner, as of now."""

from __future__ import annotations

from typing import Annotated

import typer

from compilegate.cli.common.output import emit_json, say
from compilegate.cli.common.session import (
    Invocation,
    on_cloud,
)
from compilegate.usecases.operations.weekly_summary import digests


@on_cloud
def digest(
    invocation: Invocation,
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only this owner's workloads.")
    ] = None,
) -> None:
    """Show every owner's weekly summary of the last 7 days.

    \b
    compilegate digest
    compilegate digest --owner ml-platform --json
    """
    cloud = invocation.open_cloud()
    owner_digests = digests(cloud.services, owner=owner)
    if invocation.as_json:
        emit_json([one.notification.body() for one in owner_digests])
        return
    if not owner_digests:
        say("No workload is registered. To begin: compilegate register workloads/my-job.yaml")
    for number, one in enumerate(owner_digests):
        if number:
            say("")
        for line in one.notification.message.splitlines():
            say(line)
