"""One round of a trial: take in what the last jobs left, judge, ask for the next jobs.

Returns ``next_stage`` ``none`` once the trial is settled; the decision is then recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compilegate.domain.decision import Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.domain.judge import JUDGE_VERSION, judge
from compilegate.ports import Services
from compilegate.usecases import evidence_document
from compilegate.usecases.decide import save_decision
from compilegate.usecases.round_requests import write_requests
from compilegate.usecases.take_in import take_in_round
from compilegate.usecases.trial import OpenTrial, Trial, load_record, open_trial, save_record

MAX_ROUNDS = 20


def judge_arms(event: Mapping[str, Any], *, services: Services) -> dict[str, Any]:
    """Judge the trial so far; ``continue`` comes with the requests of the next round."""
    opened = open_trial(Trial.from_event(event), services)
    round_number = int(event["round"])
    document = _document(opened)
    decision = _judge(event["runs"], document, opened)
    save_record(services.store, opened.trial, "evidence", document)
    decision = _within_limits(decision, document, opened.plan, round_number)
    if decision.verdict is not Verdict.CONTINUE or decision.next is None:
        key = save_decision(services, opened.trial, decision)
        return _answer(decision, "none", round_number, [], key)
    runs = write_requests(decision.next, opened, round_number, document)
    return _answer(decision, decision.next["stage"], round_number + 1, runs, None)


def _document(opened: OpenTrial) -> dict[str, Any]:
    try:
        found: dict[str, Any] = load_record(opened.services.store, opened.trial, "evidence")
    except NotFoundError:
        return evidence_document.begin(opened.spec.workload, opened.plan)
    return found


def _judge(
    outcomes: Sequence[Mapping[str, Any]], document: dict[str, Any], opened: OpenTrial
) -> Decision:
    try:
        take_in_round(outcomes, document, opened)
        return judge(document)
    except InvalidEvidenceError as error:
        return Decision(
            workload=opened.trial.workload,
            decision_id=f"{opened.trial.trial}-invalid",
            judge_version=JUDGE_VERSION,
            stage="quality" if evidence_document.next_order(document) else "speed",
            verdict=Verdict.INVALID,
            candidate=None,
            reasons=(Reason("evidence_invalid", str(error)),),
        )


def _within_limits(
    decision: Decision, document: Mapping[str, Any], plan: Mapping[str, Any], round_number: int
) -> Decision:
    """The hard cap is enforced during the trial as well, on what the jobs really took."""
    if decision.verdict is not Verdict.CONTINUE or decision.next is None:
        return decision
    spent, wanted = document["plan"]["spent_usd"], decision.next["usd"] or 0.0
    reason = None
    if spent + wanted > plan["max_trial_usd"]:
        reason = Reason(
            "trial_over_budget",
            f"${spent:,.2f} is spent and the next step may cost ${wanted:,.2f}: together more "
            f"than policy.max_trial_usd (${plan['max_trial_usd']:,.2f})",
        )
    elif round_number >= MAX_ROUNDS:
        reason = Reason("too_many_rounds", f"not settled after {MAX_ROUNDS} rounds")
    if reason is None:
        return decision
    return replace(
        decision, verdict=Verdict.INCONCLUSIVE, reasons=(reason, *decision.reasons), next=None
    )


def _answer(
    decision: Decision,
    next_stage: str,
    round_number: int,
    runs: Sequence[Mapping[str, Any]],
    decision_key: str | None,
) -> dict[str, Any]:
    return {
        "verdict": str(decision.verdict),
        "next_stage": next_stage,
        "round": round_number,
        "runs": list(runs),
        "decision_key": decision_key,
    }
