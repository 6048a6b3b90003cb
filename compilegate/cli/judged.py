"""The judge's answer to whatever a user hands in; what cannot be read is invalid."""

from __future__ import annotations

from collections.abc import Mapping

from compilegate.domain.decision import JUDGE_VERSION, Decision, Reason, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.judge import judge as decide

TOO_DEEP = "the document is nested too deeply"


def judged(document: object) -> Decision:
    """The decision; a document that breaks the contract is decided as invalid."""
    if not isinstance(document, Mapping):
        return invalid(document, "the document must be a JSON object")
    try:
        return decide(document)
    except InvalidEvidenceError as error:
        return invalid(document, str(error))
    except RecursionError:
        return invalid(document, TOO_DEEP)


def invalid(document: object, why: str) -> Decision:
    """The decision on a document that nothing can be read from."""
    workload = document.get("workload") if isinstance(document, Mapping) else None
    named = isinstance(workload, str) and workload and workload.isprintable()
    return Decision(
        workload=str(workload) if named else "unknown",
        decision_id="invalid",
        judge_version=JUDGE_VERSION,
        stage="speed",
        verdict=Verdict.INVALID,
        candidate=None,
        reasons=(Reason("evidence_invalid", why),),
    )
