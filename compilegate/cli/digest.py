"""``compilegate digest``: what the weekly message of each owner would say now."""

from __future__ import annotations

from typing import Annotated

import typer

from compilegate.cli.common import project
from compilegate.cli.common.error_handling import session
from compilegate.cli.common.options import JsonOption, LocalOption, StageOption
from compilegate.cli.common.output import emit_json, say
from compilegate.cli.common.providers import open_cloud
from compilegate.usecases.operations.weekly_summary import digests


def digest(
    ctx: typer.Context,
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only this owner's workloads.")
    ] = None,
    local: LocalOption = False,
    stage: StageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the last seven days of every owner's workloads, as the weekly message tells them.

    \b
    compilegate digest
    compilegate digest --owner ml-platform --json
    """
    cloud = open_cloud(session(ctx).providers, local=local, stage=project.stage_name(stage))
    owner_digests = digests(cloud.services, owner=owner)
    if as_json:
        emit_json([one.notification.body() for one in owner_digests])
        return
    if not owner_digests:
        say("Nothing is registered. To begin: compilegate register workloads/my-job.yaml")
    for number, one in enumerate(owner_digests):
        if number:
            say("")
        for line in one.notification.message.splitlines():
            say(line)
