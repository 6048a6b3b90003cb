"""One review of a promotion: what production has run since, what the judge says, what follows.

A pure function of what was read. Its outcome is one ledger record, which is written before the
flag is touched, and the documents that the judge's decision rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.decision import JUDGE_VERSION, Decision, ProbationStep, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.probation import Judge
from compilegate.domain.production.fingerprint import Comparison, Fingerprint, compare_with_proven
from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.promotion import Promotion
from compilegate.domain.production.savings import applied
from compilegate.domain.production.watch import (
    PERMANENT,
    RESUME,
    STALE,
    TREATMENT,
    WATCHED,
    Findings,
    FlagTransition,
    blind_spots,
    flag_transition,
    measured_fingerprints,
    not_watched,
    probation_document,
    row_at_the_end,
    trial_policy,
    unmeasured,
    unseen_at_the_end,
    watched_runs,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.records.reviews import PlannedTransition, Review
from compilegate.domain.records.runs import ProductionRun
from compilegate.domain.workload.model import Policy

# Kinds of messages beside those of transitions; an alarm is the judge's reason of that code.
ALARM, FAILED = "alarm", "failed"
# What the watch does not see is reported once, not after every run; by code.
REPORTED_ONCE = (
    "run_unreadable", "nothing_to_judge", "not_measured", "speed_not_watched",
    "quality_not_watched",
)  # fmt: skip


@dataclass(frozen=True)
class ReviewInput:
    """What one review starts from; ``now`` in epoch seconds.

    ``evidence`` is the trial's, None where a person turned on what it has planned and not
    measured. ``proven`` is what the trial was asked to train, ``registered`` what production is,
    empty where a team trains without a registration; so is ``policy`` None. ``flag_name`` is the
    parameter's.
    """

    workload: str
    run: str
    promotion: Promotion
    history: WorkloadHistory
    evidence: Mapping[str, Any] | None
    now: int
    flag_name: str
    proven: Fingerprint = field(default_factory=dict)
    registered: Fingerprint = field(default_factory=dict)
    policy: Policy | None = None

    @property
    def runs(self) -> Sequence[ProductionRun]:
        """Every run of production."""
        return self.history.runs

    @property
    def earlier(self) -> Sequence[Review]:
        """The reviews of this promotion before this one, oldest first."""
        return self.history.reviews_of(self.promotion.trial, since=self.promotion.at)


@dataclass(frozen=True)
class ReviewOutcome:
    """The record of a review, and the documents to store before it, by key."""

    review: Review
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def review_promotion(inputs: ReviewInput, judge: Judge) -> ReviewOutcome:
    """Judge what production has run since the promotion."""
    start = Review(
        # Not before the end of any run that was seen, as the clock counts whole seconds: the next
        # run goes by it in telling what the judge knows from what it does not.
        at=max([inputs.now, *(math.ceil(run.ended_at) for run in inputs.runs)]),
        run=inputs.run,
        trial=inputs.promotion.trial,
        candidate=inputs.promotion.candidate,
        by_human=inputs.promotion.by_human,
    )
    if inputs.evidence is None:
        notes = (unmeasured(inputs.promotion),)
        outcome = ReviewOutcome(replace(start, notes=notes, cooldown_days=Policy().cooldown_days))
    else:
        outcome = _judged(start, inputs, inputs.evidence, judge)
    kind = message_kind(outcome.review, next(reversed(inputs.earlier), None))
    return replace(outcome, review=replace(outcome.review, message_kind=kind))


def _judged(
    start: Review, inputs: ReviewInput, evidence: Mapping[str, Any], judge: Judge
) -> ReviewOutcome:
    promotion, runs = inputs.promotion, inputs.runs
    watched = watched_runs(runs, promotion)
    document = _document(inputs, evidence, watched)
    decision = _ask(judge, document, promotion) if document else None
    today = [run for run in watched if run.run == inputs.run]
    compared = compare_with_proven(
        inputs.proven, inputs.registered, measured=measured_fingerprints(evidence), runs=today
    )
    findings = Findings(
        decision,
        compared.changed,
        restored=_is_restored(inputs, compared, today),
        untreated=sum(run.without_change for run in watched),
        unwatched=not_watched(runs, promotion),
    )
    # The trial's own policy holds where nothing is registered.
    policy = inputs.policy or trial_policy(evidence)
    transition = flag_transition(promotion, findings, policy.on_stale)
    reviewed = replace(
        start,
        verdict=str(decision.verdict) if decision else None,
        next=decision.next if decision and isinstance(decision.next, ProbationStep) else None,
        reasons=tuple(decision.reasons) if decision else (),
        notes=()
        if promotion.flag.state == PERMANENT
        else blind_spots(runs, promotion, inputs.history.damaged),
        changed=compared.changed,
        differs=_differs(compared, findings),
        not_compared=compared.unknown,
        runs=len(watched),
        unseen=len(unseen_at_the_end(runs, promotion)),
        launched_by=tuple(sorted({run.launched_by for run in watched})),
        cooldown_days=policy.cooldown_days,
        transition=_planned(promotion, transition) if transition else None,
    )
    if document is None or decision is None:
        return ReviewOutcome(reviewed)
    return _with_documents(reviewed, document, decision, inputs)


def _differs(compared: Comparison, findings: Findings) -> tuple[str, ...]:
    """All that makes the promotion stale, by name."""
    treatment = [TREATMENT] if findings.without_change else []
    watched = [WATCHED] if findings.unwatched else []
    return tuple(sorted([*compared.differs, *treatment, *watched]))


def _is_restored(inputs: ReviewInput, compared: Comparison, today: Sequence[ProductionRun]) -> bool:
    """Whether all that was amiss since the promotion became stale was seen to be as it was.

    By a run that is evidence: missing runs restore nothing.
    """
    reviews = inputs.earlier
    stale = [place for place, review in enumerate(reviews) if review.action == STALE]
    if not stale or not today:
        return False
    amiss = {name for review in reviews[stale[-1] :] for name in review.differs}
    mine = [run for run in today if run.arm == inputs.promotion.candidate]
    seen = set(compared.same) | ({WATCHED} if mine else set())
    if any(run.finished and applied(run) for run in mine):
        seen.add(TREATMENT)
    return amiss <= seen


def _document(
    inputs: ReviewInput, evidence: Mapping[str, Any], watched: Sequence[ProductionRun]
) -> dict[str, Any] | None:
    """The evidence to judge; once permanent only a row of runs that went wrong."""
    promotion = inputs.promotion
    if promotion.flag.state == PERMANENT:
        watched = row_at_the_end(watched, promotion)
        if not watched:
            return None
    earlier = [run for run in inputs.runs if run.started_at < promotion.at]
    return probation_document(evidence, promotion, watched, earlier)


def _ask(judge: Judge, document: Mapping[str, Any], promotion: Promotion) -> Decision:
    """The judge's decision; evidence that cannot be read proves nothing, and the flag stays."""
    try:
        return judge(read_evidence(document))
    except InvalidEvidenceError as error:
        return Decision(
            workload=str(document["workload"]),
            decision_id=f"{promotion.trial}-unreadable",
            judge_version=JUDGE_VERSION,
            stage="probation",
            verdict=Verdict.INCONCLUSIVE,
            candidate=promotion.candidate,
            reasons=(Reason("evidence_invalid", str(error)),),
        )


def _with_documents(
    review: Review, document: Mapping[str, Any], decision: Decision, inputs: ReviewInput
) -> ReviewOutcome:
    """Evidence and decision under the decision's id, so that it can be replayed."""
    name, trial = decision.decision_id, inputs.promotion.trial

    def key(record: str) -> str:
        return naming.record_key(inputs.workload, trial, record)

    decision_key = key(naming.probation_record(name))
    evidence_key = key(naming.probation_evidence_record(name))
    return ReviewOutcome(
        replace(review, decision_id=name, decision_key=decision_key, evidence_key=evidence_key),
        {
            evidence_key: document,
            decision_key: {**decision.to_dict(inputs.flag_name), "trial": trial},
        },
    )


def _planned(promotion: Promotion, transition: FlagTransition) -> PlannedTransition:
    """The transition as the record keeps it; its id is that of the flag's version."""
    # A manual change since the promotion outranks all but a proven regression. Where a person
    # turned the candidate on, a stale promotion is reported to them and the flag stays.
    theirs = promotion.by_human and transition.action == STALE
    return PlannedTransition(
        change_id=f"watch#{promotion.version}#{transition.action}",
        action=transition.action,
        value=transition.flag.to_json(),
        reason="; ".join(reason.message for reason in transition.reasons),
        decided_at=promotion.at if theirs else promotion.at + 1,
    )


def message_kind(review: Review, before: Review | None) -> str | None:
    """The kind of message that a review is worth, None for one without news.

    ``before`` is the review before it of the same promotion.
    """
    before = before or Review(at=0, run="", trial="", candidate="")
    if review.transition is not None:
        last = before.transition
        if last is not None and last.change_id == review.transition.change_id:
            return None  # a manual change holds the flag, and its author has the message
        return STALE if review.action == RESUME else review.action
    if ALARM in review.codes - before.codes:
        return ALARM
    unproven = (str(Verdict.INCONCLUSIVE), str(Verdict.INVALID))
    if review.verdict in unproven and before.verdict != review.verdict:
        return FAILED
    unseen = review.codes & set(REPORTED_ONCE)
    return FAILED if unseen - before.codes else None
