"""After every production run: is the promotion still right, and what follows if it is not?

A review is final once it is in the ledger, which is before the flag is touched: a repeated call
finds the record and does the same again, which changes nothing. Two reviews at once read the same
ledger and make the same change of the same version of the flag, which is made once
(usecases/flag/change_flag.py).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from compilegate.domain import naming
from compilegate.domain.claims import stated_usd_per_run
from compilegate.domain.decision import JUDGE_VERSION
from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.flag_change import REVERT, TRAIN
from compilegate.domain.judging.probation import Judge, judge_production
from compilegate.domain.production.attempts import RUN_SECONDS, longest_run_seconds
from compilegate.domain.production.fingerprint import planned, registered_fingerprint
from compilegate.domain.production.history import Promotion, WorkloadHistory, standing_promotion
from compilegate.domain.production.holdback import share_of
from compilegate.domain.production.probation import PERMANENT
from compilegate.domain.production.recent import (
    Before,
    before_window,
    enough_to_review,
    windows,
)
from compilegate.domain.production.review import ReviewInput, review_promotion
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import ProbationEnd, Review
from compilegate.ports import ObjectStore, Services
from compilegate.usecases import records
from compilegate.usecases.equivalence import revoke_class
from compilegate.usecases.flag.change_flag import Changed, change_flag

# Changes of the flag that end a probation.
FINAL = (REVERT, PERMANENT)
logger = logging.getLogger("compilegate")


def review_production(
    event: Mapping[str, Any], *, services: Services, judge: Judge = judge_production
) -> dict[str, Any]:
    """Judge production after a run (``workload``, ``run``) and act on it; safe to repeat.

    The answer has ``verdict`` (None where nothing was there to judge), ``flag_changed``,
    ``decision_key`` and ``tell``: whether there is a message, with its fields beside it. Raises
    NotFoundError where the records of the trial behind the promotion are gone.
    """
    workload, run = str(event["workload"]), str(event["run"])
    history = services.ledger.history(workload, since=windows(services.clock.now(), run)[0])
    review = history.review_of(run)
    if review is None:
        promotion = standing_promotion(history.flags)
        if promotion is None:
            return _answer(None, None)
        inputs = _read(workload, run, promotion, history, services)
        reviewed, documents = review_promotion(inputs, judge)
        for key, document in documents.items():
            services.store.put(key, records.to_json(document))
        # The review that stands: this one, or that of a call which was faster.
        review = services.ledger.put_once(workload, reviewed)
    change = _change_flag(workload, review, services)
    revoke_class(workload, review, services)
    if review.action in FINAL:
        services.ledger.append(workload, _probation_end(review))
    answer = _answer(review, change)
    if review.message_kind is None:
        return answer
    # Only now: whatever pages and messages need, the flag is right without it.
    from compilegate.usecases.production.announce_review import announce_review  # noqa: PLC0415

    return {**answer, "tell": True, **announce_review(workload, review, change, services)}


def _read(
    workload: str, run: str, promotion: Promotion, history: WorkloadHistory, services: Services
) -> ReviewInput:
    settings, store, trial = (
        services.settings,
        services.store,
        records.Trial(workload, promotion.trial, ""),
    )
    evidence, now = _evidence(trial, promotion, store), services.clock.now()
    if evidence:
        promotion = replace(promotion, metric=evidence["quality"]["metric"])
    try:
        spec: records.Spec | None = records.load_registered(workload, store)
    except (NotFoundError, InvalidInputError):
        spec = None  # a team trains without a registration
    longest = longest_run_seconds(spec.workload) if spec else RUN_SECONDS
    is_enough = partial(enough_to_review, promotion=promotion, evidence=evidence, longest=longest)
    history = services.ledger.enough(workload, history, windows(now, run)[1:], is_enough)
    inputs = ReviewInput(
        workload=workload,
        run=run,
        promotion=promotion,
        history=history,
        evidence=evidence,
        now=now,
        flag_name=naming.flag_parameter(settings.stage, workload),
        before=before_window(history, promotion, longest=longest) or Before(),
    )
    if evidence is None:
        return inputs
    decision = records.decision_of(promotion.trial, history, store)
    if decision and decision.candidate != promotion.candidate:
        decision = None  # it says nothing of the candidate that is on
    speedup = decision.speedup if decision else None
    if speedup and speedup.target is None:  # else the trial did not compare walls
        inputs = replace(inputs, speedup=speedup.interval[0])
    try:
        plan = records.load_plan(store, trial)
        proven = planned(plan.arm(promotion.candidate), records.spec_at(store, plan.spec_key).job)
        inputs = replace(inputs, proven=proven)
    except (NotFoundError, *records.UNREADABLE) as error:
        # Nothing is compared; what got worse is still turned off.
        logger.warning("what %s trains is not compared with what was proven: %s", workload, error)
    if spec is None:
        return inputs
    facts = records.facts_for_workload(spec.workload, settings)
    return replace(
        inputs,
        registered=registered_fingerprint(promotion, spec.job, facts, region=settings.region),
        policy=spec.workload.policy,
        holdback=share_of(spec.workload, stated_usd_per_run(decision) if decision else None),
    )


def _evidence(
    trial: records.Trial, promotion: Promotion, store: ObjectStore
) -> Mapping[str, Any] | None:
    """The trial's, None where a person turned on what it has planned and not measured."""
    try:
        evidence: Mapping[str, Any] = records.load_record(store, trial, "evidence")
    except NotFoundError:
        if not promotion.by_human:
            raise
        return None
    is_measured = promotion.candidate in [arm["name"] for arm in evidence["arms"]]
    return evidence if is_measured or not promotion.by_human else None


def _change_flag(workload: str, review: Review, services: Services) -> Changed | None:
    transition = review.transition
    if transition is None:
        return None
    change = FlagVersion(
        version=0,
        at=review.at,
        change_id=transition.change_id,
        by=TRAIN,
        action=transition.action,
        value=transition.value,
        reason=transition.reason,
        decided_at=transition.decided_at,
        decision_id=review.decision_id,
        based_on=transition.reviewed_version,
        details={
            "trial": review.trial,
            "run": review.run,
            "decision_key": review.decision_key,
            "evidence_key": review.evidence_key,
        },
    )
    return change_flag(workload, change, services=services)


def _probation_end(review: Review) -> ProbationEnd:
    """The last decision of a probation, which stands in the ledger beside the trial's own."""
    return ProbationEnd(
        at=review.at,
        trial=review.trial,
        run=review.run,
        decision_id=str(review.decision_id),
        decision_key=review.decision_key,
        evidence_key=review.evidence_key,
        verdict=review.verdict,
        candidate=review.candidate,
        judge_version=JUDGE_VERSION,
        reasons=tuple(reason.message for reason in review.reasons),
    )


def _answer(review: Review | None, change: Changed | None) -> dict[str, Any]:
    return {
        "verdict": review.verdict if review else None,
        "decision_key": review.decision_key if review else None,
        "flag_changed": change is not None and change.changed,
        "tell": False,
    }
