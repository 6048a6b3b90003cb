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
from compilegate.domain.arithmetic import ratio
from compilegate.domain.codec import read
from compilegate.domain.decision import JUDGE_VERSION, Decision, ProbationStep, Verdict
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.probation import Judge
from compilegate.domain.optional import map_optional
from compilegate.domain.production import fingerprint, probation, slower
from compilegate.domain.production.history import Promotion, WorkloadHistory
from compilegate.domain.production.recent import Before
from compilegate.domain.reasons import Reason
from compilegate.domain.records.ledger import DamagedRecord
from compilegate.domain.records.production import ProductionRun, Review, SpeedSum
from compilegate.domain.workload.model import Policy

# Kinds of messages beside those of transitions; an alarm is the judge's reason of that code.
ALARM, FAILED, SLOWER = "alarm", "failed", "slower"
SLOWER_NOW = "slower_now"
# What the review does not see is reported once, not after every run; by code.
REPORTED_ONCE = (
    "run_unreadable", "nothing_to_judge", "not_measured", "speed_not_watched",
    "quality_not_watched", "guardrail_not_watched",
)  # fmt: skip


@dataclass(frozen=True)
class ReviewInput:
    """What one review starts from; ``now`` in epoch seconds.

    ``evidence`` is the trial's, None where a person turned on what it has planned and not
    measured. ``before`` is what lies before the window of ``history``. ``proven`` is what the trial
    was asked to train, ``registered`` what production is, empty where a team trains without a
    registration; so is ``policy`` None. ``flag_name`` is the parameter's. ``holdback`` is the share
    of runs on the baseline that the flag is to have, ``speedup`` the lower end of what the trial
    measured.
    """

    workload: str
    run: str
    promotion: Promotion
    history: WorkloadHistory
    evidence: Mapping[str, Any] | None
    now: int
    flag_name: str
    before: Before = field(default_factory=Before)
    proven: fingerprint.Fingerprint = field(default_factory=dict)
    registered: fingerprint.Fingerprint = field(default_factory=dict)
    policy: Policy | None = None
    holdback: float | None = None
    speedup: float | None = None

    @property
    def damaged(self) -> Sequence[DamagedRecord]:
        """The entries since the promotion, and those of no known time, that cannot be read."""
        since = self.promotion.at
        return [one for one in self.history.damaged if one.at >= since or not one.at]

    @property
    def earlier(self) -> Sequence[Review]:
        """The reviews of this promotion before this one, oldest first."""
        return self.history.reviews_of(self.promotion.trial, since=self.promotion.at)


def review_promotion(
    inputs: ReviewInput, judge: Judge
) -> tuple[Review, Mapping[str, Mapping[str, Any]]]:
    """Judge what production has run since the promotion.

    The record of the review, and the documents to store before it, by key.
    """
    promotion, runs = inputs.promotion, inputs.history.runs
    review = Review(
        # Not before the end of any run that was seen, as the clock counts whole seconds: the next
        # run goes by it in telling what the judge knows from what it does not.
        at=max([inputs.now, *(math.ceil(run.ended_at) for run in runs)]),
        run=inputs.run,
        trial=promotion.trial,
        candidate=promotion.candidate,
        by_human=promotion.by_human,
    )
    documents: dict[str, Mapping[str, Any]] = {}
    if inputs.evidence is None:
        text = (
            f"Trial {promotion.trial} planned {promotion.candidate} but did not measure it: there "
            "is nothing to compare production with, so its runs are not watched"
        )
        notes = (Reason("not_measured", text),)
        review = replace(review, notes=notes, cooldown_days=Policy().cooldown_days)
    else:
        watched = probation.watched_runs(runs, promotion)
        document = _document(inputs, inputs.evidence, watched.runs)
        decision = _ask(judge, document, promotion) if document else None
        review = _reviewed(review, inputs, inputs.evidence, watched, decision)
        if document and decision:  # kept under the decision's id, so that it can be replayed
            name, trial = decision.decision_id, promotion.trial
            records = naming.probation_records(name)
            said, shown = (naming.record_key(inputs.workload, trial, one) for one in records)
            review = replace(review, decision_id=name, decision_key=said, evidence_key=shown)
            decided = {**decision.to_dict(inputs.flag_name), "trial": trial}
            documents = {shown: document, said: decided}
    kind = message_kind(review, next(reversed(inputs.earlier), None))
    return replace(review, message_kind=kind), documents


def _reviewed(
    review: Review,
    inputs: ReviewInput,
    evidence: Mapping[str, Any],
    watched: probation.Watched,
    decision: Decision | None,
) -> Review:
    """The review with what was seen, what the judge decided on it, and what follows."""
    promotion = inputs.promotion
    today = [run for run in watched.runs if run.run == inputs.run]
    measured = {arm["name"]: fingerprint.recorded(arm["runs"]) for arm in evidence["arms"]}
    compared = fingerprint.compare_with_proven(
        inputs.proven, inputs.registered, measured=measured, runs=today
    )
    findings = probation.Findings(
        decision,
        compared.changed,
        restored=_is_restored(inputs, compared, today),
        untreated=sum(run.without_change for run in watched.runs),
        unwatched=probation.not_watched(watched, promotion),
        holdback=inputs.holdback,
    )
    # The trial's own policy holds where nothing is registered.
    policy = inputs.policy or read(Policy, evidence["policy"])
    amiss = [probation.TREATMENT] if findings.without_change else []
    amiss += [probation.WATCHED] if findings.unwatched else []
    following = decision.next if decision else None
    is_permanent = promotion.flag.state == probation.PERMANENT
    speed = _speed(inputs) if is_permanent else None
    return replace(
        review,
        verdict=str(decision.verdict) if decision else None,
        next=following if isinstance(following, ProbationStep) else None,
        reasons=tuple(decision.reasons) if decision else (),
        notes=(
            _slower_notes(inputs, speed)
            if is_permanent
            else probation.blind_spots(watched, promotion, inputs.damaged)
        ),
        speed=speed,
        changed=compared.changed,
        differs=tuple(sorted([*compared.differs, *amiss])),
        not_compared=compared.unknown,
        runs=inputs.before.runs + len(watched.runs),
        unseen=len(watched.unseen),
        launched_by=tuple(
            sorted({*inputs.before.launched_by, *(run.launched_by for run in watched.runs)})
        ),
        cooldown_days=policy.cooldown_days,
        transition=probation.flag_transition(promotion, findings, policy.on_stale),
    )


def _speed(inputs: ReviewInput) -> SpeedSum | None:
    """The sum of a lost speed-up, by the runs since the promotion."""
    promotion, last = inputs.promotion, next(reversed(inputs.earlier), None)
    runs = [run for run in inputs.history.runs if run.started_at >= promotion.at]
    before = last.speed if last else None
    return slower.speed_sum(before, runs, promotion.candidate, inputs.speedup, now=inputs.now)


def _slower_notes(inputs: ReviewInput, speed: SpeedSum | None) -> tuple[Reason, ...]:
    if map_optional(speed, lambda one: one.lost_at) is None:
        return ()
    text = (
        f"{inputs.promotion.candidate} was at least {ratio(inputs.speedup or 1)} as fast as the "
        "baseline in its trial (the interval's lower end). The baseline runs since speak for half "
        "of that rather than for all of it"
    )
    return (Reason(SLOWER_NOW, text),)


def _is_restored(
    inputs: ReviewInput, compared: fingerprint.Comparison, today: Sequence[ProductionRun]
) -> bool:
    """Whether all that was amiss since the promotion became stale was seen to be as it was.

    By a run that is evidence: missing runs restore nothing.
    """
    reviews = inputs.earlier
    stale = [place for place, review in enumerate(reviews) if review.action == probation.STALE]
    if not stale or not today:
        return False
    amiss = {name for review in reviews[stale[-1] :] for name in review.differs}
    mine = [run for run in today if run.arm == inputs.promotion.candidate]
    seen = set(compared.same) | ({probation.WATCHED} if mine else set())
    if any(run.finished and run.result.get("applied") is True for run in mine):
        seen.add(probation.TREATMENT)
    return amiss <= seen


def _document(
    inputs: ReviewInput, evidence: Mapping[str, Any], watched: Sequence[ProductionRun]
) -> dict[str, Any] | None:
    """The evidence to judge; once permanent only a row of runs that went wrong."""
    promotion = inputs.promotion
    if promotion.flag.state == probation.PERMANENT:
        watched = probation.row_at_the_end(watched, promotion)
        if not watched:
            return None
    earlier = [run for run in inputs.history.runs if run.started_at < promotion.at]
    return probation.probation_document(evidence, promotion, watched, earlier)


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


def message_kind(review: Review, before: Review | None) -> str | None:
    """The kind of message that a review is worth, None for one without news.

    ``before`` is the review before it of the same promotion.
    """
    before = before or Review(at=0, run="", trial="", candidate="")
    if review.transition is not None and review.action != probation.HOLDBACK:
        last = map_optional(before.transition, lambda one: one.change_id)
        if last == review.transition.change_id:
            return None  # a manual change holds the flag, and its author has the message
        return probation.STALE if review.action == probation.RESUME else review.action
    new = review.codes - before.codes
    if ALARM in new:
        return ALARM
    if SLOWER_NOW in new:
        return SLOWER
    unproven = (str(Verdict.INCONCLUSIVE), str(Verdict.INVALID))
    if review.verdict in unproven and before.verdict != review.verdict:
        return FAILED
    return FAILED if new & set(REPORTED_ONCE) else None
