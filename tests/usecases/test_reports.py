"""A trial's records, read once for page, Markdown and message."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.claims import Claims, claims_of
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.records.trials import FlagOutcome
from compilegate.report.trial_report import UNDECIDED, ReportInput
from compilegate.usecases.reports import read_trial_report
from tests.report import samples

FAILED: ReportInput = {
    "decision": None, "evidence": None, "eligibility": None, "plan": None,
    "context": {"stage": "prod", "trial": "t1", "failure": "stopped"},
}  # fmt: skip


def test_a_decided_trial_is_read_with_its_evidence_and_the_trials_before_it() -> None:
    source = samples.promote()
    evidence: Any = source["evidence"]
    evidence["plan"]["usd_by_job"] = {"job-a": 2, "job-b": "unknown"}
    decision = read(Decision, source["decision"])
    source["earlier"] = [("before", decision), ("first", None)]
    outcome = FlagOutcome(changed=True, enabled=True)
    report = read_trial_report({**source, "flag": outcome})

    assert (decision, decision, Verdict.PROMOTE, decision.candidate) == (
        report.decision, report.judged, report.verdict, report.candidate,
    )  # fmt: skip
    assert claims_of(decision) != Claims()
    assert [("before", decision, claims_of(decision)), ("first", None, Claims())] == report.earlier
    assert {"job-a": 2.0, "job-b": None} == report.usd_by_job
    assert (source["eligibility"], source["plan"], outcome) == (
        report.eligibility, report.plan, report.flag,
    )  # fmt: skip
    assert report.measured is not None
    assert (decision.candidate, "") == (report.measured.lead.name, report.not_measured)


def test_a_trial_that_failed_has_no_figures_and_says_why_nothing_was_measured() -> None:
    report = read_trial_report(FAILED)

    assert (None, UNDECIDED, None, None) == (
        report.decision, report.judged, report.verdict, report.candidate,
    )  # fmt: skip
    assert ({}, {}, [], None) == (
        report.eligibility, report.usd_by_job, report.earlier, report.measured,
    )  # fmt: skip
    assert report.not_measured


def test_without_a_decision_and_without_a_failure_there_is_nothing_to_report() -> None:
    with pytest.raises(ValueError, match=r"context\.failure"):
        read_trial_report({**FAILED, "context": {"stage": "prod", "trial": "t1"}})


def test_a_candidate_that_left_nothing_is_given_up_by_the_reason_of_its_jobs() -> None:
    source = samples.promote()
    decision, evidence = dict(source["decision"] or {}), dict(source["evidence"] or {})
    decision["reasons"] = [{"code": "speed_needs_blocks", "message": "waits", "arm": "compile"}]
    evidence["plan"] = {
        **evidence["plan"], "unmeasured_by_job": {f"job-{n}": ["compile"] for n in range(3)},
    }  # fmt: skip
    report = read_trial_report({**source, "decision": decision, "evidence": evidence})

    assert ["evidence_missing"] == [reason.code for reason in report.reasons]
