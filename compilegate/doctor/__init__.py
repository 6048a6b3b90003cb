"""Reads training scripts without running them: what they take, what slows a compiled run."""

from compilegate.doctor.argument import Option
from compilegate.doctor.command_line import CommandLine
from compilegate.doctor.description import MOST_BYTES, Description, argument_style, describe
from compilegate.doctor.examination import Examination, examine
from compilegate.doctor.finding import COMPILERS, Finding, Severity
from compilegate.doctor.own_compiling import OwnCompiling, where_it_compiles
from compilegate.doctor.precision import SPELLED
from compilegate.doctor.reported import Metric
from compilegate.doctor.rules import BY_ID, RULES
from compilegate.doctor.sarif import to_sarif
from compilegate.doctor.script import ScriptError

__all__ = [
    "BY_ID", "COMPILERS", "MOST_BYTES", "RULES", "SPELLED", "CommandLine", "Description",
    "Examination", "Finding", "Metric", "Option", "OwnCompiling", "ScriptError", "Severity",
    "argument_style", "describe", "examine", "to_sarif", "where_it_compiles",
]  # fmt: skip
