"""``compilegate plan``: what a trial would run, why, and its expected cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from compilegate.adapters.workload_files import read_workload
from compilegate.cli.check import notes_on
from compilegate.cli.common import project
from compilegate.cli.common.output import answer, emit_json, show
from compilegate.cli.common.session import FileArgument, JsonOption, RegionOption
from compilegate.domain import naming
from compilegate.domain.compilers import compiler_named
from compilegate.domain.formats import estimated_money
from compilegate.domain.judging.design import looks
from compilegate.domain.judging.next_step import FIRST_SEED
from compilegate.domain.judging.resolution import resolution
from compilegate.domain.notes import said
from compilegate.domain.planning.arms import CANDIDATE, CONTROL, ArmPlan, node_groups, speed_jobs
from compilegate.domain.planning.estimate import SEGMENT_HOURS, STARTUP_HOURS, ArmEstimate
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason, with_fix
from compilegate.domain.request.build import (
    JobContext,
    JobSite,
    quality_request,
    speed_request,
    uploaded,
)
from compilegate.domain.workload.model import Workload
from compilegate.usecases.planning import plan_for

# The screens of ``plan``: arms, rounds and limits with their cost; reasons with ``--explain``.

COLUMNS = ("arm", "what it changes", "runs on", "$ per\nhour", "$ expected\n(low to high)")
STAGES = {"speed": "speed jobs", "quality": "full runs"}


def show_plan(plan: Plan, workload: Workload, *, explain: bool) -> None:
    """Arms as a table, then the rounds with their cost, the quotas, and what was left out."""
    values = {
        "plan": plan,
        "workload": workload,
        "candidates": sum(arm.role == CANDIDATE for arm in plan.arms),
        "controls": sum(arm.role == CONTROL for arm in plan.arms),
        "notes": said(plan.notes),
        "resolution": _resolution(plan, workload),
    }
    show(
        "plan", values,
        columns=COLUMNS,
        rows=[_row(*arm, plan) for arm in zip(plan.arms, plan.estimate.arms, strict=True)],
        node_groups=len(node_groups(plan.arms)),
        turns=[
            f"{layout.at_once} of up to {layout.jobs} {STAGES[layout.stage]}"
            for layout in plan.layout
            if layout.waves > 1
        ],
    )  # fmt: skip
    if explain:
        show(
            "plan_explained", values,
            looks=looks(plan.max_quality_runs),
            compilations={a.compiler: a.compile_seconds for a in plan.arms if a.compile_seconds},
            compiler_named=compiler_named, startup_hours=STARTUP_HOURS, segment_hours=SEGMENT_HOURS,
        )  # fmt: skip


def _resolution(plan: Plan, workload: Workload) -> Mapping[float, int | None]:
    candidates = sum(arm.role == CANDIDATE for arm in plan.arms)
    most, learned = plan.max_quality_runs, plan.spreads
    return resolution(workload.policy, candidates=candidates, n_max=most, spreads=learned)


def _row(arm: ArmPlan, cost: ArmEstimate, plan: Plan) -> tuple[str, ...]:
    """The arm's cells; what it changes is how many factors, and to what."""
    expected, low, high = map(estimated_money, (cost.usd.expected, cost.usd.low, cost.usd.high))
    kind = "one factor" if len(arm.factors) == 1 else "bundle"
    changes = f"{kind}: {', '.join(_changes(arm, plan.arms[0]))}"
    return (
        arm.name if arm.role == arm.name else f"{arm.name}\n({arm.role})",
        changes if arm.factors else plan.label(arm),
        f"{arm.instance_count} x\n{arm.instance_type}",
        f"{arm.usd_per_hour:,.2f}",
        f"{expected}\n({low} to {high})",
    )


def _changes(arm: ArmPlan, baseline: ArmPlan) -> Iterator[str]:
    """What the arm changes, in short."""
    by_xla = arm.distribution == "pytorchxla"  # that compiler's own launcher, no factor
    if not compiler_named(arm.compiler).keeps_cache:
        yield "managed compiler (by pytorchxla)" if by_xla else "managed compiler"
    elif arm.compiler != "none":
        yield f"{arm.compiler} {arm.compile_mode or ''}".strip()
    if "framework" in arm.factors:
        yield f"{arm.framework['name']} {arm.framework['version']}"
    if "batch size" in arm.factors:
        if arm.devices == baseline.devices:
            yield f"batch {baseline.batch_size} to {arm.batch_size}"
        else:
            yield f"global batch {baseline.global_batch:,} to {arm.global_batch:,}"
    if arm.precision != baseline.precision:
        yield arm.precision
    if arm.distribution != baseline.distribution and not by_xla:
        yield "no launcher" if arm.distribution == "none" else arm.distribution
    if arm.entry_point:
        yield arm.entry_point
    for key, value in arm.hyperparameters.items():
        yield f"{key} {value}"
    if "instances" in arm.factors:
        yield "instances"


REFUSED = 11


def plan(
    file: FileArgument,
    *,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show why each arm is included and the basis of each figure."
        ),
    ] = False,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a trial's arms, rounds and cost; start nothing.

    \b
    compilegate plan workloads/article-bert.yaml
    compilegate plan workloads/article-bert.yaml --explain
    compilegate plan workloads/article-bert.yaml --region eu-west-1 --json

    --json adds a complete CreateTrainingJob request of every kind of job: the first speed jobs and
    a full run of each arm that may get one.

    Exit code 11 when the trial would be refused, for its cost or for lack of a candidate.
    """
    workload_file = read_workload(file, needs_prepared=False)
    workload = workload_file.workload
    settings = project.settings(region)
    trial_plan = plan_for(workload, settings, notes=notes_on(workload_file))
    if isinstance(trial_plan, Reason):
        message = with_fix(trial_plan.message, trial_plan.fix)
        refused = {"code": trial_plan.code, "message": message}
        answer({"workload": workload.name, "refused": refused}, "plan_refused", as_json=as_json)
        raise typer.Exit(REFUSED)
    if as_json:
        requests = examples(workload, trial_plan)
        gains = _resolution(trial_plan, workload).items()
        proves = [{"speedup": gain, "runs": runs} for gain, runs in gains]
        emit_json({
            **trial_plan.to_dict(), "resolution": proves, "placeholders": PLACEHOLDERS,
            "examples": requests,
        })  # fmt: skip
    else:
        show_plan(trial_plan, workload, explain=explain)


TRIAL, EXECUTION, DIGEST = "trial-id", "execution", "digest"
PLACEHOLDERS = {
    project.UNKNOWN_BUCKET: "the deployment's data bucket",
    project.UNKNOWN_ROLE: "the workload's role",
    TRIAL: "eight characters that each trial gets",
    EXECUTION: "ARN of the trial's execution",
    DIGEST: "digest of the uploaded code, or of an uploaded input",
}


def examples(workload: Workload, plan: Plan) -> list[Mapping[str, Any]]:
    """The first round's speed jobs, and a full run of every arm that may get one."""
    context = _context(workload, plan.region)
    registered = uploaded(workload, context, DIGEST)
    # The judge begins with a single block, which is enough to stop most losers.
    names = [arm.name for arm in plan.arms]
    speed = [
        speed_request(
            registered, job.arms, run=job.run(0), first_block=job.first_block,
            blocks=job.blocks, steps=plan.speed_steps, context=context,
        )
        for job in speed_jobs(plan.arms, names, first_block=0, blocks=1, control_blocks={})
    ]  # fmt: skip
    return [*speed, *full_runs(workload, plan.arms, plan.region)]


def full_runs(workload: Workload, arms: Sequence[ArmPlan], region: str) -> list[Mapping[str, Any]]:
    """The first full run of every arm that may get one."""
    context = _context(workload, region)
    registered = uploaded(workload, context, DIGEST)
    return [
        quality_request(
            registered, arm, run=naming.quality_run(1, index, FIRST_SEED), replicate=0,
            seed=FIRST_SEED, context=context,
        )
        for index, arm in enumerate(arms)
        if arm.role != CONTROL
    ]  # fmt: skip


def _context(workload: Workload, region: str) -> JobContext:
    return JobContext(
        JobSite(stage="", bucket=project.UNKNOWN_BUCKET, region=region, job_roles=""),
        project.UNKNOWN_ROLE,
        trial=TRIAL,
        execution=EXECUTION,
        source_key=naming.source_key(workload.name, DIGEST),
    )
