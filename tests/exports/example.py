"""The trial of docs/examples as the exports read it; without any package but the house's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.judge import judge
from compilegate.report.trial_report import TrialReport
from compilegate.usecases.reports import read_trial_report

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TRIAL, AT = "0mabc123", 1_790_000_000


def report(name: str = "evidence", **changes: Any) -> TrialReport:
    """The example's report; ``changes`` are of its decision document."""
    evidence = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    decision = judge(read_evidence(evidence)).to_dict("/flag") | changes
    return read_trial_report(
        {"decision": decision, "evidence": evidence, "eligibility": None, "plan": None,
         "flag": None, "context": {"stage": "prod", "trial": TRIAL}}
    )  # fmt: skip
