"""Attempts at a run, by what the ledger says of the ones before."""

from __future__ import annotations

import pytest

from compilegate.domain.production.attempts import Attempt, attempt_number, attempt_of
from compilegate.domain.records.runs import CapacityWait


def wait(attempt, instance_type=None):
    return CapacityWait(0, "r", attempt, "j", "compile", None, 0.0, 300, instance_type)


@pytest.mark.parametrize(
    ("number", "waits", "expected"),
    [
        (0, [], Attempt(0)),
        (1, [], Attempt(1, rerun=True)),
        (1, [wait(0)], Attempt(1)),
        (1, [wait(0, "ml.p4d.24xlarge")], Attempt(1, instance_type="ml.p4d.24xlarge")),
        (2, [wait(0, "ml.p4d.24xlarge"), wait(1)], Attempt(2)),
        (2, [wait(0)], Attempt(2, rerun=True)),
        (2, [wait(1)], Attempt(2, rerun=True)),
    ],
    ids=[
        "first", "after a failure", "after a wait", "on another type", "back on the own type",
        "waited, then failed", "failed, then waited",
    ],
)  # fmt: skip
def test_what_an_attempt_is_for(number, waits, expected):
    assert expected == attempt_of(number, waits)


@pytest.mark.parametrize(
    ("job", "number"),
    [("cg-a-p2-r1-0abc-p3-r0", 3), ("cg-a-0abc-p0", 0), ("cg-a-0abc-p12-r9", 12), ("nightly", 0)],
)
def test_a_jobs_name_says_which_attempt_it_was(job, number):
    assert number == attempt_number(job)
