"""``compilegate plan``: what a trial would run, why, and what that probably costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import read_workload
from compilegate.cli import project
from compilegate.cli.options import JsonOption, RegionOption
from compilegate.cli.output import emit_json, say
from compilegate.cli.plan_explained import explain_plan
from compilegate.cli.plan_requests import PLACEHOLDERS, examples
from compilegate.cli.plan_table import show_plan
from compilegate.domain.planning.plan import Refusal
from compilegate.domain.workload.model import Workload
from compilegate.usecases.plan_trial import plan_for

REFUSED = 11


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A workload file (YAML).")],
    *,
    explain: Annotated[
        bool, typer.Option("--explain", help="Why each arm is there and what each figure rests on.")
    ] = False,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a trial's arms, rounds and expected cost. Nothing is started.

    \b
    compilegate plan workloads/article-bert.yaml
    compilegate plan workloads/article-bert.yaml --explain
    compilegate plan workloads/article-bert.yaml --region eu-west-1 --json

    --json adds a complete CreateTrainingJob request of every kind of job: the first
    speed jobs and a full run of each arm that may get one.

    Exit code 11 when the trial would be refused, for its cost or for want of a candidate.
    """
    workload = read_workload(file).workload
    settings = project.settings(region)
    found = plan_for(workload, settings)
    if isinstance(found, Refusal):
        _refuse(workload, found, as_json=as_json)
    elif as_json:
        requests = examples(workload, found)
        emit_json({**found.to_dict(), "placeholders": PLACEHOLDERS, "examples": requests})
    else:
        show_plan(found, spot=workload.training.spot)
        if explain:
            explain_plan(found, workload)


def _refuse(workload: Workload, refusal: Refusal, *, as_json: bool) -> None:
    reason = {"code": refusal.reason.code, "message": refusal.reason.message}
    if as_json:
        emit_json({"workload": workload.name, "refused": reason})
    else:
        say(f"{workload.name}: there would be no trial: {refusal.reason.message}.")
        say("See why in full: compilegate check FILE", indent=2)
    raise typer.Exit(REFUSED)
