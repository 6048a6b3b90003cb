"""Why a trial ends before anything is spent, and the decision that is recorded of it."""

from __future__ import annotations

from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.eligibility import Eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.judging.evidence_file import ID_LENGTH
from compilegate.domain.planning.arms import CANDIDATE, Refusal, promoted
from compilegate.domain.planning.plan import Plan
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.promotion import cooling_down
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.workload.model import Workload


def ineligible(eligibility: Eligibility, *, workload: str, trial: str) -> Decision:
    """The decision by what blocks the trial, the workload's own reasons first, each once."""
    reasons = [*eligibility.reasons, *(r for one in eligibility.candidates for r in one.reasons)]
    blocking = [
        Reason(reason.code, reason.message, fix=reason.fix)
        for reason in reasons
        if reason.severity is Severity.BLOCK
    ]
    return _decision(
        workload, f"{trial}-ineligible", "eligibility", Verdict.INELIGIBLE,
        tuple(dict.fromkeys(blocking)),
    )  # fmt: skip


def refused(refusal: Refusal, *, workload: str, trial: str) -> Decision:
    """The decision of a trial that gets no plan."""
    return _decision(workload, f"{trial}-refused", "plan", Verdict.INCONCLUSIVE, (refusal.reason,))


def _decision(
    workload: str, decision_id: str, stage: str, verdict: Verdict, reasons: tuple[Reason, ...]
) -> Decision:
    return Decision(
        workload=workload,
        decision_id=decision_id,
        judge_version=JUDGE_VERSION,
        stage=stage,
        verdict=verdict,
        candidate=None,
        reasons=reasons,
    )


def too_soon(workload: Workload, past: WorkloadHistory, now: int) -> Refusal | None:
    """The refusal of a trial within the cooldown after a revert, None after it."""
    days = workload.policy.cooldown_days
    reason = cooling_down(past.flags, days, now=now, workload=workload.name)
    return Refusal(reason) if reason else None


def flag_too_large(plan: Plan) -> Refusal | None:
    """The refusal of a candidate whose flag could not be written if it were proven."""
    baseline = plan.arms[0]
    for arm in plan.arms:
        if arm.role != CANDIDATE:
            continue
        flag = promoted(arm, baseline, decision_id="d" * ID_LENGTH, since="2026-01-01T00:00:00Z")
        try:
            flag.to_json()
        except InvalidInputError as error:
            fix = "set fewer or shorter hyperparameters on the candidate, or in its script"
            place = f"candidates ({arm.name})"
            problem = f"has changes whose flag {error.problem}"
            message = str(InvalidInputError(problem, field=place, fix=fix))
            return Refusal(Reason("flag_too_large", message))
    return None
