"""Reads a trial's records for its report."""

from __future__ import annotations

from compilegate.domain.claims import Claims, claims_of
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.formats import number
from compilegate.domain.judging.measured import measure
from compilegate.domain.trial.silent_arms import silent_arms
from compilegate.report.statements import shown_reasons
from compilegate.report.trial_report import UNDECIDED, ReportInput, TrialReport


def read_trial_report(source: ReportInput) -> TrialReport:
    """Read the records.

    Raises ValueError for a verdict outside the closed set, and when there is neither a
    decision nor a failure to report.
    """
    decision = read(Decision, source["decision"]) if source["decision"] else None
    if decision is None and not source["context"].get("failure"):
        raise ValueError("a report needs a decision, or context.failure saying why there is none")
    judged = decision or UNDECIDED
    measured, not_measured = measure(source["evidence"], judged)
    plan = (source["evidence"] or {}).get("plan") or {}
    return TrialReport(
        source=source,
        decision=decision,
        judged=judged,
        reasons=shown_reasons(judged, measured, silent=silent_arms(source["evidence"])),
        measured=measured,
        not_measured=not_measured,
        verdict=decision.verdict if decision else None,
        candidate=judged.candidate,
        eligibility=source["eligibility"] or {},
        plan=source["plan"],
        flag=source.get("flag"),
        earlier=[
            (name, before, claims_of(before) if before else Claims())
            for name, before in source.get("earlier") or ()
        ],
        usd_by_job={job: number(usd) for job, usd in (plan.get("usd_by_job") or {}).items()},
    )
