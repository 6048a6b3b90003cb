"""Asks the judge about a trial's evidence as far as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError, NotFoundError
from compilegate.usecases import evidence_document
from compilegate.usecases.account import Outcomes
from compilegate.usecases.take_in import take_in_round
from compilegate.usecases.trial import OpenTrial, load_record

Judge = Callable[[Mapping[str, Any]], Decision]


def load_evidence(opened: OpenTrial) -> dict[str, Any]:
    """The evidence of the rounds so far; before the first there is none."""
    try:
        found: dict[str, Any] = load_record(opened.services.store, opened.trial, "evidence")
    except NotFoundError:
        return evidence_document.begin(opened.spec.workload, opened.plan)
    return found


def judge_with(
    outcomes: Outcomes, document: dict[str, Any], opened: OpenTrial, judge: Judge
) -> Decision:
    """The decision with these outcomes taken in; what breaks the contract is ``invalid``."""
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
