"""``.venv-checkov/bin/python -m tests.stacks.in_checkov TEMPLATE...``: what Checkov finds, as JSON.

``[[rule, resource], ...]`` of all templates; raises for a template that it cannot read, which would
otherwise have no findings. Asks nobody: the rules are those of the package.
"""

from __future__ import annotations

import json
import sys

from checkov.cloudformation.runner import Runner
from checkov.runner_filter import RunnerFilter


def findings(templates: list[str]) -> list[tuple[str, str]]:
    """Rule and resource of every failed check."""
    only = RunnerFilter(framework=["cloudformation"])
    report = Runner().run(root_folder=None, files=templates, runner_filter=only)
    if report.parsing_errors or not report.passed_checks:
        raise ValueError(f"Checkov could not read {report.parsing_errors or templates}")
    return [(check.check_id, check.resource) for check in report.failed_checks]


if __name__ == "__main__":
    json.dump(findings(sys.argv[1:]), sys.stdout)
