"""The pages on reasons are as the registry has them, and the rules keep to their severities."""

from __future__ import annotations

import pytest
from hypothesis import given

from compilegate.domain.workload.model import Workload
from tests.docs.reason_tables import ELIGIBILITY_PAGE as PAGE
from tests.docs.reason_tables import REASONS_PAGE, ROW, eligibility_page, reasons_page
from tests.domain.workload_builder import check
from tests.domain.workload_strategies import quick, workloads

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
    rows = ROW.finditer(PAGE.read_text())
    return {row["code"]: set(row["severities"].split(", ")) for row in rows}


def test_the_pages_have_the_rows_of_the_registry() -> None:
    hint = "write them anew: python -m tests.docs.reason_tables"

    assert eligibility_page(PAGE.read_text()) == PAGE.read_text(), hint
    assert reasons_page() == REASONS_PAGE.read_text(), hint


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
