"""The screens of ``plan``: arms, rounds and limits with their cost; reasons with ``--explain``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from compilegate.cli.common.output import say
from compilegate.cli.common.tables import say_table
from compilegate.domain.arithmetic import ratio
from compilegate.domain.compilers import keeps_cache
from compilegate.domain.formats import (
    duration,
    estimated_money,
    money,
    percent,
    plural,
    significant,
)
from compilegate.domain.judging.looks import looks
from compilegate.domain.planning.arm_plan import CANDIDATE, CONTROL, ArmPlan
from compilegate.domain.planning.estimate import SEGMENT_HOURS, STARTUP_HOURS, ArmEstimate
from compilegate.domain.planning.plan import Plan
from compilegate.domain.planning.speed_jobs import node_groups
from compilegate.domain.workload.model import Workload

COLUMNS = ("arm", "what it changes", "runs on", "$ per\nhour", "$ expected\n(low to high)")
GAP = 2


def show_plan(plan: Plan, *, spot: bool) -> None:
    """Arms as a table, then the rounds with their cost, the quotas, and what was left out."""
    roles = Counter(arm.role for arm in plan.arms)
    beside = f" and {plural(roles[CONTROL], 'control')}" if roles[CONTROL] else ""
    count = plural(roles[CANDIDATE], "candidate")
    say(f"{plan.workload} in {plan.region}: {count}{beside} beside the baseline")
    say()
    _say_arms(plan)
    say()
    for text in (*_rounds(plan), *_totals(plan, spot=spot), *_quotas(plan), *_turns(plan)):
        say(text)
    if plan.script_compiles:
        say(plan.script_compiles.text)
    if plan.left_out:
        say(f"Left out: {', '.join(name for name, _ in plan.left_out)} (--explain says why).")


def _say_arms(plan: Plan) -> None:
    rows = [_row(arm, cost, plan) for arm, cost in zip(plan.arms, plan.estimate.arms, strict=True)]
    # Only the changes are wrapped, so that names and figures stay whole.
    whole = [index for index in range(len(COLUMNS)) if index != 1]
    right = [index for index, name in enumerate(COLUMNS) if name.startswith("$")]
    say_table(COLUMNS, rows, right=right, whole=whole, gap=GAP)


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


def hours(amount: float) -> str:
    """A duration given in hours."""
    return duration(amount * 3600)


def _rounds(plan: Plan) -> Iterator[str]:
    groups = len(node_groups(plan.arms))
    where = (
        "every arm back to back in one job"
        if groups == 1
        else f"{groups} jobs for every block, as some arms need nodes of their own"
    )
    yield (
        f"1. Speed: {where}; 1 to {plan.max_blocks} blocks of {plan.speed_steps} steps, about "
        f"{money(plan.estimate.speed_usd)}. Slower candidates stop here."
    )
    yield (
        "2. Quality: one candidate at a time, fastest first, a few full runs a round until it is "
        f"decided; probably {plan.quality_runs} of each candidate (at most "
        f"{plan.max_quality_runs}), {money(plan.estimate.quality_usd)}."
    )


def _totals(plan: Plan, *, spot: bool) -> Iterator[str]:
    cost = plan.estimate
    yield (
        f"Together about {money(cost.usd)} and {hours(cost.hours)} if every candidate "
        f"gets full runs; {money(cost.low_usd)} and {hours(cost.low_hours)} if the first "
        f"block drops them all. Hard limit: {money(plan.max_trial_usd)} (policy.max_trial_usd)."
    )
    yield _prices(plan)
    if spot:
        yield "Managed spot training in every arm: these on-demand prices are the upper bound."


def _prices(plan: Plan) -> str:
    """Each price with where, when and how surely it was read."""
    priced = [
        f"{price.instance_type} {money(price.usd_per_hour)} an hour ({price.confidence}"
        f"{f', {price.region}' if price.region else ''}, "
        f"{f'as of {price.as_of}' if price.as_of else 'undated'})"
        for price in plan.prices
    ]
    here = all(price.region in (None, plan.region) for price in plan.prices)
    refresh = "" if here else f" compilegate facts refresh reads those of {plan.region}."
    return f"Prices on demand: {', '.join(priced)}.{refresh}"


def _quotas(plan: Plan) -> Iterator[str]:
    for need in plan.quotas:
        text = f"Quota: up to {need.at_once} x {need.instance_type} at once"
        if need.quota is None:
            several = need.at_once > need.one_job
            assumed = f" Assumed: {need.one_job}, those of one job." if several else ""
            yield f"{text}; not known (compilegate facts refresh reads it).{assumed}"
        else:
            yield f"{text}, {need.quota} allowed."


def _turns(plan: Plan) -> Iterator[str]:
    """How rounds are laid out within the quotas, and how long that takes."""
    stages = {"speed": "speed jobs", "quality": "full runs"}
    turns = [
        f"{layout.at_once} of up to {layout.jobs} {stages[layout.stage]}"
        for layout in plan.layout
        if layout.waves > 1
    ]
    if turns:
        together = hours(plan.estimate.hours_side_by_side)
        yield (
            f"Within the quotas, jobs take turns: {' and '.join(turns)} at a time. This takes the "
            f"{hours(plan.estimate.hours)} above; without quotas it would take {together}."
        )


def explain_plan(plan: Plan, workload: Workload) -> None:
    """Everything that the table does not say."""
    baseline = plan.arms[0]
    _section("Why each arm is included")
    for arm, cost in zip(plan.arms, plan.estimate.arms, strict=True):
        sentences = [f"{arm.why}.", *_consequences(arm, baseline), *_price(arm, baseline, workload)]
        sentences.append(
            f"Its cluster is billed for about {hours(cost.hours.expected)} "
            f"({hours(cost.hours.low)} to {hours(cost.hours.high)})."
        )
        say(f"{arm.name}: {' '.join(sentences)}", indent=2, hang=2)
    if plan.left_out:
        _section("Left out")
        for name, why in plan.left_out:
            say(f"{name}: {why}.", indent=2, hang=2)
    _section("How many full runs")
    for line in _runs(plan, workload):
        say(line, indent=2, hang=2)
    _section("Basis of the figures")
    for line in _basis(plan, workload):
        say(line, indent=2, hang=2)


def _section(title: str) -> None:
    say()
    say(title, "bold")


def _consequences(arm: ArmPlan, baseline: ArmPlan) -> Iterator[str]:
    """What else changes with batch and devices."""
    if arm.global_batch != baseline.global_batch:
        yield (
            f"One step takes {arm.global_batch:,} samples (baseline {baseline.global_batch:,}), "
            f"so {significant(baseline.global_batch / arm.global_batch)} times as many steps make "
            "an epoch."
        )
    if arm.learning_rate != baseline.learning_rate:
        rates = f"{baseline.learning_rate:g} to {arm.learning_rate:g}"
        yield f"The learning rate goes from {rates}; add a warm-up to the script."


def _price(arm: ArmPlan, baseline: ArmPlan, workload: Workload) -> Iterator[str]:
    """The speed at which another cluster pays: per sample, not by time alone."""
    if arm.usd_per_hour == baseline.usd_per_hour and arm.devices == baseline.devices:
        return
    dearer = arm.usd_per_hour / baseline.usd_per_hour
    promoted = max(1.0, dearer * workload.policy.promote_speedup)
    yield (
        f"{money(arm.usd_per_hour / arm.devices)} per hour and device, the baseline "
        f"{money(baseline.usd_per_hour / baseline.devices)}. It breaks even in dollars per sample "
        f"at {ratio(dearer)} the baseline's speed, in time at {ratio(1.0)}; it is promoted from "
        f"{ratio(promoted)}. Dollars to the same quality follow from full runs."
    )


def _runs(plan: Plan, workload: Workload) -> Iterator[str]:
    candidates = sum(arm.role == CANDIDATE for arm in plan.arms)
    share = workload.policy.alpha / candidates
    yield f"{plan.runs_basis}."
    yield (
        f"The judge looks after {', '.join(str(n) for n in looks(plan.max_quality_runs))} runs; "
        f"each candidate may be promoted wrongly with a chance of {percent(share)} "
        f"(policy.alpha {percent(workload.policy.alpha)} over {candidates})."
    )
    if workload.policy.quality_runs != "shadow":
        yield (
            f"policy.quality_runs is {workload.policy.quality_runs}: if the workload is registered "
            "with this job, its production runs serve as full runs. These figures assume that the "
            "trial makes all of them itself."
        )


def _basis(plan: Plan, workload: Workload) -> Iterator[str]:
    yield (
        f"A full run: {workload.schedule.run_hours:g} h (schedule.run_hours) at the cheaper of "
        "the two clusters, because a candidate gets full runs only once its blocks have proven "
        "it faster and cheaper. History replaces some baseline runs, never all."
    )
    yield (
        f"A speed job, assumed: {STARTUP_HOURS * 60:g} min to start and up to "
        f"{SEGMENT_HOURS * 60:g} min for each arm and block{_compilations(plan)}."
    )
    yield (
        "Low: one block, every candidate dropped. Expected: three blocks, then the full runs "
        f"above. High: {plan.max_blocks} blocks and {plan.max_quality_runs} full runs of every "
        "candidate, but no more than policy.max_trial_usd."
    )


def _compilations(plan: Plan) -> str:
    """What a first compilation takes, by compiler."""
    seconds_by_compiler = {
        arm.compiler: arm.compile_seconds for arm in plan.arms if arm.compile_seconds
    }
    sentences = []
    for compiler, seconds in seconds_by_compiler.items():
        each = "in every block, as it has no cache" if not keeps_cache(compiler) else "once"
        sentences.append(f"{duration(seconds)} to compile with {compiler} {each}")
    return "".join(f"; {text}" for text in sentences)
