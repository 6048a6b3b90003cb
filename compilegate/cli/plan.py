"""``compilegate plan``: what a trial would run, and what that probably costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from compilegate.adapters.workload_files import read_workload
from compilegate.cli import project
from compilegate.cli.options import JsonOption
from compilegate.cli.output import console, emit_json, say
from compilegate.domain import naming
from compilegate.domain.next_step import FIRST_SEED
from compilegate.domain.plan import Plan, Refusal
from compilegate.domain.request import JobContext, quality_request, speed_request
from compilegate.domain.workload import Workload
from compilegate.report.formats import UNKNOWN, money, significant
from compilegate.usecases.plan_trial import plan_for

REFUSED = 11
TRIAL = "trial-id"


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A workload file (YAML).")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a trial's arms, jobs and expected cost. Nothing is started.

    \b
    compilegate plan workloads/bert-docs.yaml
    compilegate plan workloads/bert-docs.yaml --json

    --json adds complete CreateTrainingJob requests as examples: the first speed job
    and a full run of each arm.

    Exit code 11 when the trial would be refused, for its cost or for want of a candidate.
    """
    workload = read_workload(file).workload
    settings = project.settings()
    found = plan_for(workload, settings)
    if isinstance(found, Refusal):
        _refuse(workload, found, as_json=as_json)
    elif as_json:
        emit_json({**found.to_dict(), "examples": examples(workload, found, settings.region)})
    else:
        show_plan(found)


def _refuse(workload: Workload, refusal: Refusal, *, as_json: bool) -> None:
    reason = {"code": refusal.reason.code, "message": refusal.reason.message}
    if as_json:
        emit_json({"workload": workload.name, "refused": reason})
    else:
        say(f"{workload.name}: there would be no trial: {refusal.reason.message}.")
        say("See why in full: compilegate check FILE", indent=2)
    raise typer.Exit(REFUSED)


def show_plan(found: Plan) -> None:
    """Arms as a table, then rounds, cost and time."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("arm", "compiler", "changes", "runs on", "$ per hour"):
        table.add_column(name, overflow="fold", justify="right" if name[0] == "$" else "left")
    for arm in found.arms:
        changed = {key: value for key, value in arm.overrides.items() if key != "compiler"}
        changes = ", ".join(f"{key} {value}" for key, value in changed.items()) or UNKNOWN
        place = f"{arm.instance_count} x {arm.instance_type}"
        table.add_row(arm.name, arm.compiler, changes, place, f"{arm.usd_per_hour:,.2f}")
    say(f"{found.workload}: {len(found.arms)} arms")
    console().print(table)
    estimate = found.estimate
    say(
        f"1. Speed: every arm back to back, 1 to {found.max_blocks} blocks "
        f"of {found.speed_steps} steps; about {money(estimate.speed_usd)}. Losers stop here."
    )
    say(
        f"2. Quality: one candidate at a time, a few full runs a round until it is settled; "
        f"probably {found.quality_runs} per arm (at most {found.max_quality_runs}), "
        f"{money(estimate.quality_usd)}."
    )
    say(
        f"Together about {money(estimate.usd)} and {significant(estimate.hours)} h. That is "
        f"expected; what is never exceeded is {money(found.max_trial_usd)} (policy.max_trial_usd)."
    )


def examples(workload: Workload, found: Plan, region: str) -> Sequence[Mapping[str, Any]]:
    """The first speed job's and a full run's request per arm, with a stand-in bucket and role."""
    context = JobContext(
        bucket=project.UNKNOWN_BUCKET,
        region=region,
        role_arn=project.UNKNOWN_ROLE,
        trial=TRIAL,
        execution="execution",
        source_key=naming.source_key(workload.name, "digest"),
    )
    # The judge begins with a single block, which is enough to stop most losers.
    speed = speed_request(
        workload, found.arms, run=naming.speed_run(0), first_block=0,
        blocks=1, steps=found.speed_steps, context=context,
    )  # fmt: skip
    full = [
        quality_request(
            workload, arm, run=naming.quality_run(1, index, FIRST_SEED), replicate=0,
            seed=FIRST_SEED, context=context,
        )
        for index, arm in enumerate(found.arms)
    ]  # fmt: skip
    return [speed, *full]
