"""What a run recorded is read in one way, whatever stands in the ledger."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from compilegate.domain.production.savings import (
    applied,
    failed,
    metric_of,
    problem_of,
    wall_seconds_of,
    work_of,
)
from tests.domain.production.run_builder import production_run


@pytest.mark.parametrize(
    ("recorded", "metric", "wall"),
    [
        ({"metric": 0, "wall_seconds": 0.5}, 0.0, 0.5),
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


@pytest.mark.parametrize(
    ("result", "work"),
    [
        ({}, None),
        ({"work": "much"}, None),
        ({"work": {}}, (0.0, 0.0, 0.0)),
        ({"work": {}, "steps": 700}, (700.0, 0.0, 0.0)),
        ({"work": {"steps": 0, "samples_per_step": 3}, "steps": 700}, (700.0, 2100.0, 0.0)),
        ({"work": {"steps": 500, "samples_per_step": 3, "tokens_per_step": 7}, "steps": 700},
         (500.0, 1500.0, 3500.0)),
        ({"work": {"steps": 500, "tokens_per_step": 7}, "steps": 200}, (200.0, 0.0, 1400.0)),
    ],
)  # fmt: skip
def test_work_is_the_fewer_steps_with_what_each_held(
    result: dict[str, Any], work: tuple[float, ...] | None
) -> None:
    assert work == work_of(dataclasses.replace(production_run(1), result=result))


@pytest.mark.parametrize(("recorded", "expected"), [(True, True), (False, False), (None, False)])
def test_a_change_was_applied_where_the_run_says_so(recorded: object, expected: bool) -> None:
    run = dataclasses.replace(production_run(1), result={"applied": recorded})

    assert expected is applied(run)
