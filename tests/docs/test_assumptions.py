"""The table of assumptions is up to date, and each row can be looked up."""

from __future__ import annotations

import pytest

from compilegate.domain.failures import RESOURCE_LIMIT_ERROR, SCRIPT
from compilegate.verify.assumptions import load_assumptions
from compilegate.verify.checks import CHECKS
from stacks.states import THROTTLED
from tests.docs.assumptions import PAGE, ROOT, refreshed

ASSUMPTIONS = load_assumptions()


def test_the_table_of_assumptions_is_todays() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert refreshed(page) == page, "write it anew: python -m tests.docs.assumptions"


def test_every_assumption_is_in_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert all(f"(`{one.id}`)" in page for one in ASSUMPTIONS)


def test_each_has_a_check_of_its_own_or_a_reason_why_not() -> None:
    assert len({one.id for one in ASSUMPTIONS}) == len(ASSUMPTIONS)
    assert {one.id for one in ASSUMPTIONS if one.check} == set(CHECKS)
    assert all(bool(one.check) != bool(one.unchecked) for one in ASSUMPTIONS)


@pytest.mark.parametrize("one", ASSUMPTIONS, ids=lambda one: one.id)
def test_what_relies_on_it_is_there(one) -> None:
    assert (ROOT / one.relied_on).exists(), one.relied_on


def test_names_that_the_code_waits_for_are_those_that_are_assumed() -> None:
    expected = {one.id: one.expected for one in ASSUMPTIONS}

    assert expected["over-quota"] == RESOURCE_LIMIT_ERROR
    assert expected["failure-class"] == SCRIPT
    assert expected["invalid-request"] == expected["throttled"] == THROTTLED[0]
