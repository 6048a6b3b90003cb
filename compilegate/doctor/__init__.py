"""Reads training scripts without running them: what breaks or slows a compiled run."""

from compilegate.doctor.examine import Examination, examine
from compilegate.doctor.finding import COMPILERS, Finding, Severity
from compilegate.doctor.rules import BY_ID, RULES

__all__ = ["BY_ID", "COMPILERS", "RULES", "Examination", "Finding", "Severity", "examine"]
