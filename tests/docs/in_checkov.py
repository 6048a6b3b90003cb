"""``.venv-checkov/bin/python -m tests.docs.in_checkov``: examples read by published parsers.

Standard input: Terraform. The argument: a workflow file. Checkov carries both, a parser of HCL and
the schema of GitHub's workflows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import hcl2
import yaml
from checkov.github_actions.schemas import gha_workflow
from jsonschema import Draft7Validator


def main() -> None:
    terraform = hcl2.loads(sys.stdin.read())
    workflow = yaml.load(Path(sys.argv[1]).read_text(), yaml.BaseLoader)
    errors = [error.message for error in Draft7Validator(gha_workflow).iter_errors(workflow)]
    sys.stdout.write(json.dumps({"terraform": terraform, "errors": errors}))


if __name__ == "__main__":
    main()
