"""Generated parts of pages are as code and data are today."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from typer.testing import CliRunner

from compilegate.cli.main import app
from compilegate.domain.claims import KINDS
from compilegate.domain.failures import RESOURCE_LIMIT_ERROR, SCRIPT
from compilegate.domain.reasons import registry
from compilegate.facts import load_facts
from compilegate.flags.backoff import Backoff
from stacks.states import THROTTLED
from tests.domain.workload_builder import check
from tests.domain.workload_strategies import quick, workloads
from tools.docs.examples import DOCUMENTS, EXAMPLES, text
from tools.docs.generated import (
    ELIGIBILITY,
    EXAMPLE,
    MEASUREMENTS,
    NOTIFICATIONS,
    PAGES,
    REASONS,
    ROOT,
    decision_message,
    documented_codes,
)
from tools.verify_aws.assumptions import Proof, load_assumptions
from tools.verify_aws.checks import CHECKS

RUNTIME = ROOT / "training" / "compilegate_runtime"
HINT = "write it anew: python -m tools.docs"
ENDS = {"evidence.json": ("promote", 0), "probation.json": ("revert", 12)}
ELIGIBILITY_CODES = documented_codes(ELIGIBILITY.read_text())
CONTRACT = """
not_gpu framework_unsupported version_unsupported no_compiler_image image_unpatched
instance_unsupported instance_retired region_unsupported distribution_unsupported
distribution_missing dynamic_shapes padding_longest ragged_last_batch run_too_short data_bound
communication_bound low_gpu_utilization fp32_only precision_unsupported batch_may_shrink
learning_rate_unscaled no_same_version_baseline framework_downgrade script_needs_port
saving_below_trial_cost history_missing underpowered trial_over_budget heterogeneous_cluster
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_what_code_and_data_make_of_it(page, monkeypatch):
    monkeypatch.chdir(ROOT)

    assert PAGES[page](page.read_text()) == page.read_text(), HINT


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_example_is_what_its_builder_makes_and_ends_as_the_pages_say(name):
    file = EXAMPLES / name
    result = CliRunner().invoke(app, ["judge", str(file), "--json"])

    assert text(DOCUMENTS[name]()) == file.read_text(), HINT
    assert file.stat().st_size < 60_000
    assert ENDS[name] == (json.loads(result.stdout)["verdict"], result.exit_code)


def test_every_reason_code_is_documented_and_none_of_the_contract_was_renamed():
    codes = {**ELIGIBILITY_CODES, **documented_codes(REASONS.read_text())}

    assert codes == {code: set(map(str, kind.severities)) for code, kind in registry().items()}
    assert set(CONTRACT.split()) <= set(ELIGIBILITY_CODES)


def test_every_code_of_what_a_check_does_not_look_at_is_documented():
    files = [
        one
        for folder in (".", "equivalence", "launching")
        for one in RUNTIME.glob(f"{folder}/*.py")
    ]
    code = re.compile(r'(?:Unseen\(|_require_finite\([^")]*)"(\w+)"')
    raised = code.findall("".join(one.read_text() for one in files))
    table = (ROOT / "docs" / "training.md").read_text().partition("in its `unseen`")[2]

    assert sorted({*raised}) == re.findall(r"^\| `(\w+)` \| \w.*\. \|$", table, re.MULTILINE)


@given(workload=workloads)
@quick
def test_what_is_said_of_a_workload_is_documented_with_its_severity(workload):
    result = check(workload)

    for reason in (*result.reasons, *(r for one in result.candidates for r in one.reasons)):
        assert str(reason.severity) in ELIGIBILITY_CODES[reason.code]


def test_the_page_on_notifications_has_every_kind_and_an_example():
    page = NOTIFICATIONS.read_text()
    rows = re.findall(r"^\| `(\w+)` \| .* \| .* \| `compilegate .*` \|$", page, re.MULTILINE)

    assert list(KINDS) == rows
    assert EXAMPLE.search(page)
    assert decision_message().kind == "decision"


def test_measurements_and_constants_are_those_that_the_page_names():
    page = " ".join(MEASUREMENTS.read_text().split())
    backoff, price = Backoff(), load_facts().price("ml.g5.2xlarge")

    assert f"from {backoff.first:.0f} to at most {backoff.most:.0f} seconds" in page
    assert f"up to {backoff.seconds / 60:.0f} minutes" in page
    assert f"two minutes: {124 / 3600 * price.usd_per_hour:.2f} USD" in page


def test_each_assumption_has_a_check_or_a_reason_why_not_and_relies_on_what_is_there():
    assumptions = load_assumptions()
    expected = {one.id: one.expected for one in assumptions}

    assert len(expected) == len(assumptions)
    assert {one.id for one in assumptions if one.check} == set(CHECKS)
    assert all(bool(one.check) != bool(one.unchecked) for one in assumptions)
    assert [] == [one.relied_on for one in assumptions if not (ROOT / one.relied_on).exists()]
    for one in assumptions:
        file, _, name = one.test.partition("::")
        assert (one.proof is Proof.READING) == (not one.test), one.id
        assert not file or f"def {name}(" in (ROOT / file).read_text(), one.test
    assert expected["over-quota"] == RESOURCE_LIMIT_ERROR
    assert expected["failure-class"] == SCRIPT
    assert expected["invalid-request"] == expected["throttled"] == THROTTLED[0]
