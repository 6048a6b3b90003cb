"""The trial plan: arms, how they are measured and what that probably costs.

Full runs are asked for round by round until quality is settled; the estimate takes the runs
that a proof needs with 80 % chance at the spread that history shows, three per arm without
one. That is an expectation, not a bound; the bound is ``max_trial_usd``, which a running trial
never exceeds. A trial whose estimate exceeds it, or that could hardly prove the margin, is
refused before anything is spent.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from compilegate.domain import economics
from compilegate.domain.arm_plan import CANDIDATE, ArmPlan, scaled_learning_rate
from compilegate.domain.decision import Reason
from compilegate.domain.eligibility import Eligibility
from compilegate.domain.facts_model import Facts
from compilegate.domain.looks import looks
from compilegate.domain.noninferiority import Samples
from compilegate.domain.power import design_for
from compilegate.domain.quality import TELLING_HISTORY, underpowered
from compilegate.domain.workload import BASELINE, Candidate, Workload, plain

# One block stops most losers; two more reach the first look.
BLOCKS_PER_ROUND = 2
SPEED_STEPS = 320
SHORT_SPEED_STEPS = 160
SHORT_RUN_HOURS = 1.0


@dataclass(frozen=True)
class Estimate:
    """What a trial probably costs; ``usd`` of all jobs, ``hours`` of its rounds in turn."""

    usd: float
    hours: float
    speed_usd: float
    quality_usd: float


@dataclass(frozen=True)
class Plan:
    """Everything that is fixed before a trial starts.

    ``quality_runs`` per arm are expected, up to ``max_quality_runs`` allowed per candidate.
    """

    workload: str
    arms: tuple[ArmPlan, ...]
    quality_runs: int
    max_quality_runs: int
    speed_steps: int
    blocks_per_round: int
    max_blocks: int
    usd_per_block: float
    usd_per_quality_run: float
    estimate: Estimate
    max_trial_usd: float

    def to_dict(self) -> dict[str, Any]:
        """The plan as it is stored and shown."""
        return {"schema": 1, **asdict(self)}


@dataclass(frozen=True)
class Refusal:
    """Why no plan was made."""

    reason: Reason


def plan_trial(
    workload: Workload,
    eligibility: Eligibility,
    facts: Facts,
    *,
    region: str,
) -> Plan | Refusal:
    """Plan the arms that eligibility let through, or say why there is nothing to plan."""
    candidates = eligibility.open_candidates
    if not candidates:
        return Refusal(Reason("ineligible", "no candidate is eligible"))
    arms: list[ArmPlan] = []
    for candidate in (None, *candidates):
        arm = _arm(workload, candidate, facts, region)
        if isinstance(arm, Refusal):
            return arm
        arms.append(arm)
        if arm.shares_nodes != arms[0].shares_nodes:
            return Refusal(
                Reason(
                    "needs_own_speed_job",
                    f"{arm.name} needs another image, instance or launcher than the baseline, so "
                    "they cannot share the node that makes short blocks fair; this release "
                    "cannot measure it: leave the candidate out",
                )
            )
    proof = _proof(workload, candidates=len(candidates))
    if isinstance(proof, Refusal):
        return proof
    plan = _costed(workload, tuple(arms), proof)
    if plan.estimate.usd > plan.max_trial_usd:
        return Refusal(
            Reason(
                "trial_over_budget",
                f"the trial is expected to cost ${plan.estimate.usd:,.2f}, more than the "
                f"${plan.max_trial_usd:,.2f} that policy.max_trial_usd allows; "
                "raise the cap, shorten the run or name fewer candidates",
            )
        )
    return plan


def _arm(
    workload: Workload,
    candidate: Candidate | None,
    facts: Facts,
    region: str,
) -> ArmPlan | Refusal:
    base = workload.training
    change = candidate or Candidate(name=BASELINE)
    compiler = change.compiler or "none"
    instance_type = change.instance_type or base.instance_type
    count = change.instance_count or base.instance_count
    price = facts.price(instance_type)
    instance = facts.instance(instance_type)
    framework = change.framework or workload.framework
    image = facts.image(framework, compiler=compiler, region=region, instance=instance)
    if price is None or instance is None:
        text = f"no price is known for {instance_type}; set it under price_overrides in cdk.json"
        return Refusal(Reason("price_unknown", text))
    if image.uri is None:
        return Refusal(Reason("no_compiler_image", f"{change.name}: {image.why}"))
    batch_size = change.batch_size or base.batch_size
    return ArmPlan(
        name=change.name,
        compiler=compiler,
        image=image.uri,
        instance_type=instance_type,
        instance_count=count,
        devices=max(instance.gpus, 1) * count,
        usd_per_hour=price.usd_per_hour * count,
        precision=change.precision or base.precision,
        batch_size=batch_size,
        learning_rate=scaled_learning_rate(
            base.learning_rate, batch_size / base.batch_size, change.learning_rate_scaling
        ),
        distribution=change.distribution or base.distribution,
        overrides=change.overrides(),
        compile_mode=change.compile_mode,
        entry_point=change.entry_point,
        framework={} if change.framework is None else plain(asdict(change.framework)),
        hyperparameters=dict(change.hyperparameters or {}),
        role=CANDIDATE if candidate else BASELINE,
    )


@dataclass(frozen=True)
class _Proof:
    """Full runs per arm that the proof probably takes, and those that it may take.

    ``rounds`` of one candidate: one to each look, and one before the first look where a single
    run beside a telling history may already end it.
    """

    runs: int
    n_max: int
    rounds: int


def _proof(workload: Workload, *, candidates: int) -> _Proof | Refusal:
    quality, schedule = workload.quality, workload.schedule
    # Every trial runs its full runs as shadow runs so far, whatever policy says.
    design = design_for(
        replace(workload.policy, quality_runs="shadow"),
        history=len(quality.history),
        candidates=candidates,
        runs_remaining=schedule.runs_per_week * economics.WEEKS_PER_YEAR,
    )
    if design is None:
        text = f"{schedule.runs_per_week:g} runs a week leave too few to prove quality on"
        return Refusal(Reason("saving_below_trial_cost", text))
    history = Samples((), (), quality.history)
    refused = underpowered(history, quality.margin, design)
    if refused:
        return Refusal(Reason("underpowered", f"{quality.metric}: {refused.reason}"))
    needed = None
    telling = len(quality.history) >= TELLING_HISTORY
    if telling and history.pooled_variance:
        needed = design.runs_needed(math.sqrt(history.pooled_variance) / quality.margin)
        needed = needed or design.n_max
    runs = needed or min(economics.QUALITY_RUNS_PER_ARM, design.n_max)
    return _Proof(runs, design.n_max, telling + sum(n <= runs for n in looks(design.n_max)))


def _costed(workload: Workload, arms: tuple[ArmPlan, ...], proof: _Proof) -> Plan:
    run_hours = workload.schedule.run_hours
    rates = [arm.usd_per_hour for arm in arms]
    speed_hours = economics.speed_gate_hours(len(arms), run_hours)
    usd = economics.trial_usd(rates, run_hours, proof.runs)
    short = run_hours < SHORT_RUN_HOURS
    speed_usd = max(rates) * speed_hours
    return Plan(
        workload=workload.name,
        arms=arms,
        quality_runs=proof.runs,
        max_quality_runs=proof.n_max,
        speed_steps=SHORT_SPEED_STEPS if short else SPEED_STEPS,
        blocks_per_round=BLOCKS_PER_ROUND,
        max_blocks=economics.SPEED_BLOCKS,
        usd_per_block=speed_usd / economics.SPEED_BLOCKS,
        usd_per_quality_run=max(rates) * run_hours,
        estimate=Estimate(
            usd=usd,
            hours=speed_hours + run_hours * proof.rounds * (len(arms) - 1),
            speed_usd=speed_usd,
            quality_usd=usd - speed_usd,
        ),
        max_trial_usd=workload.policy.max_trial_usd,
    )
