"""Arms, full runs and cost of a trial, for whoever asks: ``check``, ``plan`` and PlanTrial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compilegate.domain.facts.model import Facts
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.arms import Refusal, plan_arms
from compilegate.domain.planning.estimate import Estimate, estimate
from compilegate.domain.planning.layout import QuotaLookup, unlimited
from compilegate.domain.planning.proof import SHADOW, Proof, plan_proof
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Candidate, Workload


@dataclass(frozen=True)
class TrialDesign:
    """What would be run, how often, and what that may cost."""

    arms: tuple[ArmPlan, ...]
    proof: Proof
    estimate: Estimate


def design_trial(
    workload: Workload,
    candidates: Sequence[Candidate],
    facts: Facts,
    *,
    region: str,
    why: Mapping[str, str] | None = None,
    mode: str = SHADOW,
    quota: QuotaLookup = unlimited,
) -> TrialDesign | Refusal:
    """The trial of these candidates, or why there is none; ``mode`` says who makes full runs.

    ``quota`` lays its rounds out, which makes them longer, never dearer.
    """
    arms = plan_arms(workload, candidates, facts, region=region, why=why)
    if isinstance(arms, Refusal):
        return arms
    proof = plan_proof(workload, candidates=len(candidates), mode=mode)
    if proof is None:
        runs = f"{workload.schedule.runs_per_week:g}"
        text = f"{runs} runs a week leave too few to prove quality on"
        return Refusal(Reason("saving_below_trial_cost", text))
    found = estimate(
        arms,
        run_hours=workload.schedule.run_hours,
        proof=proof,
        cap_usd=workload.policy.max_trial_usd,
        runs_per_week=workload.schedule.runs_per_week,
        quota=quota,
    )
    return TrialDesign(arms, proof, found)


def expected_usd(
    workload: Workload, candidates: Sequence[Candidate], facts: Facts, *, region: str
) -> float | None:
    """Expected price of a trial, as ``plan`` reckons it; None where none could be planned."""
    if not candidates:
        return None
    found = design_trial(workload, candidates, facts, region=region)
    return None if isinstance(found, Refusal) else found.estimate.usd
