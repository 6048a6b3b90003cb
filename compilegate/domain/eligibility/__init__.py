"""Whether a compiler could apply and pay, before anything is spent."""

from compilegate.domain.eligibility.candidate_job import MeasuredOverhead
from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.eligibility.payoff import Economics
from compilegate.domain.eligibility.result import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    blocking,
)

__all__ = [
    "CandidateEligibility",
    "Economics",
    "Eligibility",
    "EligibilityVerdict",
    "MeasuredOverhead",
    "blocking",
    "check_eligibility",
]
