"""Reads training scripts without running them: what breaks or slows a compiled run."""

from compilegate.doctor.examination import Examination, examine
from compilegate.doctor.finding import COMPILERS, Finding, Severity
from compilegate.doctor.rules import BY_ID, RULES
from compilegate.doctor.sarif import to_sarif
from compilegate.doctor.script import ScriptError

__all__ = [
    "BY_ID", "COMPILERS", "RULES", "Examination", "Finding", "ScriptError", "Severity", "examine",
    "to_sarif",
]  # fmt: skip
