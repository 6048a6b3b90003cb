"""The screens of ``plan``: arms, rounds and limits with their cost; reasons with ``--explain``."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.cli.common.template import show
from compilegate.domain.compilers import keeps_cache
from compilegate.domain.formats import estimated_money
from compilegate.domain.judging.statistics import looks
from compilegate.domain.notes import said
from compilegate.domain.planning.arms import CANDIDATE, CONTROL, ArmPlan, node_groups
from compilegate.domain.planning.estimate import SEGMENT_HOURS, STARTUP_HOURS, ArmEstimate
from compilegate.domain.planning.plan import Plan
from compilegate.domain.workload.model import Workload

COLUMNS = ("arm", "what it changes", "runs on", "$ per\nhour", "$ expected\n(low to high)")
STAGES = {"speed": "speed jobs", "quality": "full runs"}


def show_plan(plan: Plan, workload: Workload, *, explain: bool) -> None:
    """Arms as a table, then the rounds with their cost, the quotas, and what was left out."""
    candidates = sum(arm.role == CANDIDATE for arm in plan.arms)
    values = {
        "plan": plan,
        "workload": workload,
        "candidates": candidates,
        "notes": said(plan.notes),
    }
    show(
        "plan", values,
        controls=sum(arm.role == CONTROL for arm in plan.arms),
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
            keeps_cache=keeps_cache, startup_hours=STARTUP_HOURS, segment_hours=SEGMENT_HOURS,
        )  # fmt: skip


def _row(arm: ArmPlan, cost: ArmEstimate, plan: Plan) -> tuple[str, ...]:
    expected, low, high = map(estimated_money, (cost.usd.expected, cost.usd.low, cost.usd.high))
    return (
        arm.name if arm.role == arm.name else f"{arm.name}\n({arm.role})",
        _label(arm, plan),
        f"{arm.instance_count} x\n{arm.instance_type}",
        f"{arm.usd_per_hour:,.2f}",
        f"{expected}\n({low} to {high})",
    )


def _label(arm: ArmPlan, plan: Plan) -> str:
    """How many factors the arm changes, and to what."""
    if not arm.factors:
        return plan.label(arm)
    kind = "one factor" if len(arm.factors) == 1 else "bundle"
    return f"{kind}: {', '.join(_changes(arm, plan.arms[0]))}"


def _changes(arm: ArmPlan, baseline: ArmPlan) -> Iterator[str]:
    """What the arm changes, in short."""
    by_xla = arm.distribution == "pytorchxla"  # that compiler's own launcher, no factor
    if not keeps_cache(arm.compiler):
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
