"""A probation whose runs the judge cannot request, or cannot fully see."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import Decision, Verdict
from compilegate.domain.judging.monitor import FIRST
from tests.domain.evidence_builder import (
    CENTRE,
    PROBATION_MARGIN,
    codes,
    judge,
    probation_document,
    runs,
    step_of,
    watch,
)
from tests.domain.test_probation import NORMAL, alarmed, requested_arms, without_reference


def without_wall_clock(doc: dict[str, Any], runs_made: int, loss: float = 0.0) -> Decision:
    for run in runs(doc):
        run["wall_seconds"] = None
    for number in range(runs_made):
        decision = judge(doc)
        if decision.verdict is not Verdict.CONTINUE:
            return decision
        name = requested_arms(decision)[0]
        confirm = (step_of(decision) or {})["runs"][0]["confirm"]
        metric = NORMAL[number] - (loss if name != "baseline" else 0.0)
        watch(doc, name, metric=metric, confirm=confirm)
        runs(doc, name, "probation")[-1]["wall_seconds"] = None
    return judge(doc)


def test_a_job_that_records_no_wall_clock_is_never_permanent_and_reported():
    decision = without_wall_clock(without_reference(), 40)
    reason = next(r for r in decision.reasons if r.code == "speed_not_watched")

    assert Verdict.CONTINUE == decision.verdict
    assert ["compile"] == requested_arms(decision)
    assert "in 37 production runs" in reason.message


def test_a_job_that_records_no_wall_clock_is_still_watched_on_quality():
    decision = without_wall_clock(probation_document(), 40, loss=2 * PROBATION_MARGIN)

    assert Verdict.REVERT == decision.verdict


def test_runs_without_a_wall_clock_do_not_count_and_the_others_do():
    doc = probation_document(policy={"probation_runs": 4})
    for number in range(7):
        watch(doc, metric=NORMAL[number])
        if number % 2:
            runs(doc, "compile", "probation")[-1]["wall_seconds"] = None

    assert {"probation_passed", "speed_not_watched"} == codes(judge(doc))


def by_team(doc: dict[str, Any], runs_made: int, loss: float) -> tuple[Decision, int]:
    """A team's own pipeline: every sixth job is a baseline, the arms do not take turns."""
    for number in range(1, runs_made + 1):
        mine = number % 6 > 0
        metric = NORMAL[number % 60] - (loss if mine else 0.0)
        watch(doc, "compile" if mine else "baseline", metric=metric, launched_by="team")
        decision = judge(doc)
        if decision.verdict is not Verdict.CONTINUE:
            return decision, number
    return decision, runs_made


@pytest.mark.parametrize("margins", [1, 2])
def test_a_fall_in_jobs_that_a_team_launches_is_reverted(margins):
    decision, runs_made = by_team(probation_document(), 60, margins * PROBATION_MARGIN)

    assert Verdict.REVERT == decision.verdict
    assert {"quality_regressed"} == codes(decision)
    assert runs_made <= 30


def test_clean_jobs_that_a_team_launches_end_in_permanence():
    decision, _ = by_team(probation_document(), 60, 0.0)

    assert Verdict.PERMANENT == decision.verdict


def test_jobs_that_a_team_launches_clear_a_false_alarm():
    decision, _ = by_team(alarmed(), 60, 0.0)

    assert {"probation_passed", "alarm_cleared"} == codes(decision)


def test_a_teams_job_before_an_alarm_checks_nothing():
    doc = probation_document()
    for _ in range(FIRST):
        watch(doc, "baseline", launched_by="team")
    for _ in range(3):
        watch(doc, metric=CENTRE - 2 * PROBATION_MARGIN, launched_by="team")

    assert FIRST == requested_arms(judge(doc)).count("baseline")
