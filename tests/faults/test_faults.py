"""After every fault: flag equals ledger, no job, lock or question left, no wrong promotion."""

from __future__ import annotations

import pytest

from tests.faults.campaign import Result, tried

LEAST_ROWS = 2100
# Each n-th row: a spread over all executions and kinds, prime so that it falls on each.
SPREAD = 53


def unsurvived(results: list[Result]) -> list[str]:
    return [
        f"{one.where}: {one.what}, expected: {one.expected}: {one.problems}"
        for one in results
        if one.problems
    ]


@pytest.mark.sample
def test_a_spread_of_faults_leaves_nothing_behind() -> None:
    results = tried(SPREAD, seconds=200)

    assert LEAST_ROWS // SPREAD <= len(results)
    assert [] == unsurvived(results)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_fault_leaves_anything_behind() -> None:
    results = tried()

    assert LEAST_ROWS <= len(results)
    assert [] == unsurvived(results)
