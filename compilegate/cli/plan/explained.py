"""``plan --explain``: why each arm is included, what was left out, the basis of each figure."""

from __future__ import annotations

from collections.abc import Iterator

from compilegate.cli.common.output import say
from compilegate.cli.plan.table import hours
from compilegate.domain.compilers import keeps_cache
from compilegate.domain.formats import duration, money, percent, ratio, significant
from compilegate.domain.judging.looks import looks
from compilegate.domain.planning.arm_plan import CANDIDATE, ArmPlan
from compilegate.domain.planning.estimate import SEGMENT_HOURS, STARTUP_HOURS
from compilegate.domain.planning.plan import Plan
from compilegate.domain.workload.model import Workload


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
        yield f"The learning rate goes from {rates}; give the script some warm-up."


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
            "trial makes them all itself, as it does otherwise."
        )


def _basis(plan: Plan, workload: Workload) -> Iterator[str]:
    for price in plan.prices:
        dated = f", as of {price.as_of}" if price.as_of else ", undated"
        where = f" in {price.region}" if price.region else ""
        yield (
            f"Price: {price.instance_type} {money(price.usd_per_hour)} an hour{where} "
            f"({price.confidence}{dated}). On demand; spot costs at most this."
        )
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
