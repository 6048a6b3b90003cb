"""Decides again on the evidence of a recorded decision, by the judge that made it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from compilegate.domain import job_output, naming
from compilegate.domain.codec import read
from compilegate.domain.decision import JUDGE_VERSION, Decision, Verdict
from compilegate.domain.errors import InvalidEvidenceError, InvalidInputError, NotFoundError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge
from compilegate.domain.records.production import ProbationEnd, Review
from compilegate.domain.records.trials import TrialDecided
from compilegate.ports import Services
from compilegate_judge import judges
from compilegate_judge.comparison import Comparison, compare

DECISION = "decision"
EVIDENCE_INVALID = "evidence_invalid"
# Reasons that a job's output was refused, so that it never became evidence.
REFUSED_OUTPUT = ((EVIDENCE_INVALID,), (job_output.CODE,))
WITHOUT_EVIDENCE = {
    "eligibility": "the workload was not eligible, so that nothing was measured; the facts "
    "are kept beside it in eligibility.json",
    "plan": "the trial was refused before anything ran, so that there is no evidence; its reasons "
    "are in the decision",
}


@dataclass(frozen=True)
class DecisionRecord:
    """A recorded decision and where its evidence lies."""

    workload: str
    trial: str
    decision_key: str
    evidence_key: str


@dataclass(frozen=True)
class Replay:
    """``comparison`` is None where the decision cannot be replayed; ``why_not`` says why."""

    record: DecisionRecord
    recorded: Mapping[str, Any]
    comparison: Comparison | None
    why_not: str | None = None

    @property
    def decision(self) -> Decision:
        """The recorded decision."""
        return read(Decision, self.recorded)


def find_decision(
    decision_id: str, workloads: Collection[str], services: Services
) -> DecisionRecord:
    """Where a decision of one of these workloads lies; raises InvalidInputError."""
    for workload in workloads:
        history = services.ledger.history(workload)
        decisions: tuple[TrialDecided | Review | ProbationEnd, ...] = (
            *history.decided, *history.reviews, *history.probation_ends,
        )  # fmt: skip
        for decision in decisions:
            if decision.decision_id == decision_id and decision.decision_key:
                evidence = None if isinstance(decision, TrialDecided) else decision.evidence_key
                of_trial = naming.record_key(workload, decision.trial, "evidence")
                return DecisionRecord(
                    workload, decision.trial, decision.decision_key, evidence or of_trial
                )
    where = ", ".join(workloads) if 0 < len(workloads) < 4 else f"{len(workloads)} workloads"
    raise InvalidInputError(
        f"is not a decision recorded for {where}", field="--replay", value=decision_id,
        fix="`compilegate flag history` and `compilegate status --json` name those that are",
    )  # fmt: skip


def replay(record: DecisionRecord, services: Services) -> Replay:
    """Decide again on the recorded evidence and compare every field.

    Raises InvalidInputError for a decision of a judge that is neither today's nor archived.
    """
    recorded = json.loads(services.store.get(record.decision_key))
    decision = read(Decision, recorded)
    if decision.stage in WITHOUT_EVIDENCE:
        return Replay(record, recorded, None, WITHOUT_EVIDENCE[decision.stage])
    try:
        evidence = json.loads(services.store.get(record.evidence_key))
    except NotFoundError as error:
        return Replay(record, recorded, None, f"its evidence is gone: {error}")
    try:
        replayed = _decide_again(decision, evidence)
    except InvalidEvidenceError as error:
        # The judge refuses to read the evidence: so it did then, or the evidence has changed.
        replayed = {**recorded, "reasons": [{"code": EVIDENCE_INVALID, "message": str(error)}]}
        if decision.codes != (EVIDENCE_INVALID,):
            replayed["verdict"] = str(Verdict.INVALID)
        return Replay(record, recorded, compare(recorded, replayed))
    if decision.codes in REFUSED_OUTPUT:
        why = "what broke the contract lay in a job's output and never became evidence"
        return Replay(record, recorded, None, why)
    return Replay(record, recorded, compare(recorded, replayed))


def _decide_again(decision: Decision, evidence: object) -> Mapping[str, Any]:
    version, flag = decision.judge_version, decision.flag.name if decision.flag else ""
    if version == JUDGE_VERSION:
        return judge(read_evidence(evidence)).to_dict(flag)
    if judges.is_archived(version):
        return judges.decide(version, evidence, flag)
    raise InvalidInputError(
        f"was decided by a judge that this release does not have; its own is {JUDGE_VERSION}",
        field="--replay", value=f"judge {version}",
        fix=f"use a release of Compilegate that has judge {version}: CHANGELOG.md says which",
    )  # fmt: skip
