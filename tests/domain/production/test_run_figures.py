"""What a run recorded is read in one way, whatever stands in the ledger."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from compilegate.domain.production.savings import failed, metric_of, problem_of, wall_seconds_of
from tests.domain.production.run_builder import production_run


@pytest.mark.parametrize(
    ("recorded", "metric", "wall"),
    [
        ({"metric": 0, "wall_seconds": 3}, 0.0, 3.0),
        ({"metric": None, "wall_seconds": 0}, None, None),
        ({"metric": float("nan"), "wall_seconds": float("inf")}, None, None),
        ({"metric": "0.9", "wall_seconds": -1.0}, None, None),
        ({"metric": True, "wall_seconds": 10**400}, None, None),
        ({}, None, None),
    ],
)
def test_a_figure_is_a_finite_number_or_unknown(
    recorded: dict[str, Any], metric: float | None, wall: float | None
) -> None:
    run = dataclasses.replace(production_run(1), result=recorded)

    assert (metric, wall) == (metric_of(run), wall_seconds_of(run))


@pytest.mark.parametrize(
    ("status", "result", "expected"),
    [
        ("Completed", {"finished": True}, False),
        ("Completed", {}, False),  # it left no evidence, and its model is there
        ("Completed", {"finished": False}, True),
        ("Failed", {}, True),
        ("NotRun", {}, True),
    ],
)
def test_a_run_failed_by_its_status_or_its_own_record(
    status: str, result: dict[str, Any], expected: bool
) -> None:
    assert expected == failed(dataclasses.replace(production_run(1), status=status, result=result))


def test_the_problem_is_the_ledgers_then_the_runs_own() -> None:
    run = dataclasses.replace(production_run(1), reason=None, result={"reason": "loss is nan."})

    assert "loss is nan" == problem_of(run)
    assert "stopped" == problem_of(dataclasses.replace(run, reason="stopped."))
    assert not problem_of(dataclasses.replace(run, result={}))
