"""Reads training scripts without running them: what they take, what slows a compiled run."""

from compilegate_doctor.argument import Option
from compilegate_doctor.command_line import CommandLine
from compilegate_doctor.description import MOST_BYTES, Description, argument_style, describe
from compilegate_doctor.examination import Examination, examine
from compilegate_doctor.finding import COMPILERS, Finding, Severity
from compilegate_doctor.observed import Observed, observed_by
from compilegate_doctor.own_compiling import OwnCompiling, where_it_compiles
from compilegate_doctor.precision import SPELLED
from compilegate_doctor.reported import Metric, metric_named, metrics_in_line
from compilegate_doctor.rules import BY_ID, RULES
from compilegate_doctor.sarif import to_sarif
from compilegate_doctor.script import ScriptError

__all__ = [
    "BY_ID", "COMPILERS", "MOST_BYTES", "RULES", "SPELLED", "CommandLine", "Description",
    "Examination", "Finding", "Metric", "Observed", "Option", "OwnCompiling", "ScriptError",
    "Severity", "argument_style", "describe", "examine", "metric_named", "metrics_in_line",
    "observed_by", "to_sarif", "where_it_compiles",
]  # fmt: skip
