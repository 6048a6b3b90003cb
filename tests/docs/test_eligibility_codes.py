"""docs/eligibility.md names every code that a rule can say, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given

import compilegate.domain.eligibility
from compilegate.domain.eligibility.bottleneck import FIXES
from compilegate.domain.workload.model import Workload
from tests.domain.workload_builder import check
from tests.domain.workload_strategies import quick, workloads

PAGE = Path(__file__).resolve().parents[2] / "docs" / "eligibility.md"
ROW = re.compile(
    r"^\| `(?P<code>[a-z0-9_]+)` \| (?P<severities>[a-z, ]+) \| .+ \| .+ \|$", re.MULTILINE
)
# What a rule is called with where the code is not written out: an image's reason, a severity's.
FROM_IMAGES = {"no_compiler_image", "region_unsupported"}
MAKERS = {"block", "warn", "info", "found", "Reason"}
CONTRACT = """
not_gpu framework_unsupported version_unsupported no_compiler_image image_unpatched
instance_unsupported instance_retired region_unsupported distribution_unsupported
distribution_missing dynamic_shapes padding_longest ragged_last_batch run_too_short data_bound
communication_bound low_gpu_utilization fp32_only precision_unsupported batch_may_shrink
learning_rate_unscaled no_same_version_baseline framework_downgrade script_needs_port
saving_below_trial_cost history_missing underpowered trial_over_budget heterogeneous_cluster
"""


def documented() -> dict[str, set[str]]:
    """Code to the severities that its row names."""
    rows = ROW.finditer(PAGE.read_text(encoding="utf-8"))
    return {row["code"]: set(row["severities"].split(", ")) for row in rows}


def written() -> set[str]:
    """First argument of every call that makes a reason, over the rules' sources."""
    (folder,) = compilegate.domain.eligibility.__path__
    codes: set[str] = set()
    for file in Path(folder).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in MAKERS and isinstance(first := node.args[0], ast.Constant):
                codes.add(str(first.value))
    return codes


def test_the_page_has_a_row_for_every_code_and_no_other() -> None:
    assert written() | set(FIXES) | FROM_IMAGES == set(documented())


@pytest.mark.parametrize("code", CONTRACT.split())
def test_no_code_of_the_contract_was_renamed(code: str) -> None:
    assert code in documented()


@given(workload=workloads)
@quick
def test_whatever_is_said_of_a_workload_is_documented_with_its_severity(
    workload: Workload,
) -> None:
    found, known = check(workload), documented()

    for reason in (*found.reasons, *(r for one in found.candidates for r in one.reasons)):
        assert str(reason.severity) in known[reason.code]
