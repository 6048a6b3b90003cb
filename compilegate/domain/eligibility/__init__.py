"""Whether a compiler could apply and pay, before anything is spent."""

from compilegate.domain.eligibility.check import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    blocking,
    check_eligibility,
)
from compilegate.domain.eligibility.job import MeasuredOverhead, measured_overheads
from compilegate.domain.eligibility.payoff import Economics

__all__ = [
    "CandidateEligibility",
    "Economics",
    "Eligibility",
    "EligibilityVerdict",
    "MeasuredOverhead",
    "blocking",
    "check_eligibility",
    "measured_overheads",
]
