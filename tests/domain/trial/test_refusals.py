"""The decision of a trial that ends before anything is spent."""

from __future__ import annotations

from compilegate.domain.decision import Verdict
from compilegate.domain.reasons import Reason, Severity
from compilegate.domain.trial.refusals import ineligible, refused
from tests.domain.workload_builder import SOUND, change, check

TOO_SHORT = change(SOUND, schedule__run_hours=0.001)


def test_an_ineligible_trial_names_each_blocking_reason_once_and_of_no_arm() -> None:
    eligibility = check(TOO_SHORT)
    decision = ineligible(eligibility, workload="bert-docs", trial="t")

    given = [*eligibility.reasons, *(r for one in eligibility.candidates for r in one.reasons)]
    blocking = {reason.code for reason in given if reason.severity is Severity.BLOCK}
    assert blocking
    assert (Verdict.INELIGIBLE, "t-ineligible") == (decision.verdict, decision.decision_id)
    assert blocking == {reason.code for reason in decision.reasons}
    assert len(set(decision.reasons)) == len(decision.reasons)
    assert {None} == {reason.arm for reason in decision.reasons}


def test_a_refused_trial_is_inconclusive_with_the_reason() -> None:
    reason = Reason("quota_too_low", "the quota is 0")
    decision = refused(reason, workload="bert-docs", trial="t")

    assert (Verdict.INCONCLUSIVE, "t-refused") == (decision.verdict, decision.decision_id)
    assert (reason,) == decision.reasons
