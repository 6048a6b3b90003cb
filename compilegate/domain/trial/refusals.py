"""Why a trial ends before anything is spent, and the decision that is recorded of it."""

from __future__ import annotations

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.eligibility import Eligibility
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.judging.evidence_file import ID_LENGTH
from compilegate.domain.planning.arms import CANDIDATE, promoted
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason, Severity


def ineligible(eligibility: Eligibility, *, workload: str, trial: str) -> Decision:
    """The decision by what blocks the trial, the workload's own reasons first, each once."""
    reasons = [*eligibility.reasons, *(r for one in eligibility.candidates for r in one.reasons)]
    blocking = [
        Reason(reason.code, reason.message, fix=reason.fix)
        for reason in reasons
        if reason.severity is Severity.BLOCK
    ]
    return Decision.of_this_judge(
        workload, f"{trial}-ineligible", "eligibility", Verdict.INELIGIBLE, blocking
    )


def refused(reason: Reason, *, workload: str, trial: str) -> Decision:
    """The decision of a trial that gets no plan."""
    return Decision.of_this_judge(
        workload, f"{trial}-refused", "plan", Verdict.INCONCLUSIVE, [reason]
    )


def flag_too_large(plan: Plan) -> Reason | None:
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
            return Reason("flag_too_large", message)
    return None
