"""``python -m compilegate_doctor FILE...``: the doctor alone, a line per finding."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path

from compilegate_doctor import Examination, ScriptError, Severity, examine, to_sarif

CLEAN, BREAKS, SLOWS, BAD_INPUT = 0, 10, 11, 2


def main() -> int:
    """Examine the files and print what was found; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m compilegate_doctor")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a Python script")
    parser.add_argument("--sarif", action="store_true", help="print one SARIF 2.1.0 log")
    arguments = parser.parse_args()
    try:
        examinations = [examine(path.read_bytes(), str(path)) for path in arguments.files]
    except (OSError, ScriptError) as error:
        sys.stderr.write(f"{error}\n")
        return BAD_INPUT
    if arguments.sarif:
        log = to_sarif(examinations, version=version("compilegate-doctor"))
        sys.stdout.write(f"{json.dumps(log, indent=2)}\n")
    else:
        _print_findings(examinations)
    severities = {finding.severity for item in examinations for finding in item.findings}
    if Severity.BREAKS in severities:
        return BREAKS
    return SLOWS if Severity.SLOWS in severities else CLEAN


def _print_findings(examinations: list[Examination]) -> None:
    for item in examinations:
        for finding in item.findings:
            place = f"{item.file}:{finding.place.line}:{finding.place.column}"
            text = f"{finding.severity}: {finding.message} [{finding.rule}]"
            sys.stdout.write(f"{place}: {text}\n    fix: {finding.fix}\n")


if __name__ == "__main__":
    sys.exit(main())
