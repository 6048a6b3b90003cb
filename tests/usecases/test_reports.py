"""A trial's records, read once for page, Markdown and message."""

from __future__ import annotations

import pytest

from compilegate.report.trial_report import ReportInput
from compilegate.usecases.reports import read_trial_report
from tests.report import samples

FAILED: ReportInput = {
    "decision": None, "evidence": None, "eligibility": None, "plan": None,
    "context": {"stage": "prod", "trial": "t1", "failure": "stopped"},
}  # fmt: skip


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
