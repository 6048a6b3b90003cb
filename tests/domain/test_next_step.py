"""The one step that an open trial asks for next: how much of it, in which order, at what price."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from compilegate.domain.decision import QualityStep, SpeedStep
from compilegate.domain.judging import next_step as following
from compilegate.domain.judging.comparison import samples_of
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.equivalence import State
from compilegate.domain.judging.evidence import Arm, Evidence, TrialPlan
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.next_step import (
    InformationValue,
    concurrent_runs_missing,
    is_shadow,
    next_quality,
    next_speed,
    paid_baseline_runs,
    value_of_shadow_runs,
)
from tests.domain.evidence_builder import add_candidate, arm, document, quality_run, runs, speed_run

HOUR = 3600.0
# Hours of the segments, block by block, and prices per hour: no two arms have the same.
HOURS = {"baseline": [1.0, 2.0, 4.0, 8.0], "compile": [0.5, 1.5, 2.5, 5.0], "slow": [9.0] * 4}
PRICES = {"baseline": 2.0, "compile": 3.0, "slow": 50.0}


def measured(**plan: Any) -> dict[str, Any]:
    """Four blocks of three arms, of known hours and prices; two more lead to the next look."""
    doc = {**document(blocks=4), "plan": plan}
    add_candidate(doc, "slow", speedup=0.8)
    for name, hours in HOURS.items():
        arm(doc, name)["usd_per_hour"] = PRICES[name]
        for run, of_block in zip(runs(doc, name, "speed"), hours, strict=True):
            run["step_seconds"] = [of_block * HOUR / 160] * 160
    return doc


def speed_step(doc: dict[str, Any], *open_arms: str) -> SpeedStep:
    return next_speed(read_evidence(doc), open_arms or ("compile",))


@pytest.mark.parametrize(
    ("plan", "name", "usd"),
    [({}, "compile", 8 * 2 + 5 * 3), ({}, "slow", 8 * 2 + 9 * 50),
     ({"usd_per_block": 7.5}, "compile", 7.5)],
)  # fmt: skip
def test_two_more_blocks_cost_what_the_last_one_of_each_open_arm_took(plan, name, usd):
    step = speed_step(measured(**plan), name)

    assert (2, ("baseline", name), pytest.approx(2 * usd)) == (step.blocks, step.arms, step.usd)


def test_the_first_step_is_one_block_whatever_a_round_may_hold():
    step = speed_step({**document(blocks=0), "plan": {"blocks_per_round": 5}})

    assert (0, 1, ("baseline", "compile"), TrialPlan().speed_steps) == (
        step.block, step.blocks, step.arms, step.steps,
    )  # fmt: skip
    assert step.why.startswith("1 short block,")
    assert speed_step(measured()).why.startswith("2 short blocks,")


def test_the_arm_that_is_on_is_measured_beside_those_on_top_of_it():
    evidence = replace(read_evidence(measured()), on_top_of="compile")

    assert ("baseline", "compile", "slow") == next_speed(evidence, ["slow"]).arms


def test_a_segment_without_steps_prices_nothing_and_the_one_before_does():
    doc = measured()
    crashed = {**speed_run(4, 0.03), "step_seconds": [], "finished": False}
    arm(doc)["runs"].append({**crashed, "failure": "error"})

    assert pytest.approx(1 * (8 * 2 + 5 * 3)) == speed_step(doc).usd


@pytest.mark.parametrize("name", ["baseline", "compile"])
def test_a_block_has_no_price_without_that_of_each_arm_in_it(name):
    unpriced, unseen = measured(), measured()
    unpriced["usd_per_hour"] = None
    del arm(unpriced, name)["usd_per_hour"]
    for run in runs(unseen, name, "speed"):
        run["step_seconds"] = []

    assert speed_step(unpriced).usd is None
    assert speed_step(unseen).usd is None


@pytest.mark.parametrize(
    ("done", "other", "plan", "blocks"),
    [
        (3, 1, {}, 1),
        (1, 3, {}, 1),
        (4, 4, {"max_blocks": 5}, 1),
        (4, 4, {"max_blocks": 6, "blocks_per_round": 5}, 2),
        (6, 1, {"max_blocks": 8, "blocks_per_round": 5}, 2),
        (1, 1, {"blocks_per_round": 5}, 2),
        (1, 1, {"blocks_per_round": 1}, 1),
    ],
)
def test_blocks_go_on_to_the_next_look_of_the_open_arm_that_has_most(done, other, plan, blocks):
    doc = {**document(blocks=6), "plan": plan}
    add_candidate(doc, "other", speedup=1.3)
    for name, count in (("compile", done), ("other", other)):
        arm(doc, name)["runs"] = runs(doc, name, "speed")[:count]

    assert (6, blocks) == (
        (step := speed_step(doc, "compile", "other")).block, step.blocks,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("elsewhere", "open_arms", "separate"),
    [
        ((), ("compile", "slow"), False),
        (("slow",), ("compile",), False),
        (("slow",), ("compile", "slow"), True),
        (("compile", "slow"), ("compile", "slow"), True),
    ],
)
def test_it_says_whether_open_arms_run_on_nodes_of_their_own(elsewhere, open_arms, separate):
    doc = measured()
    for name in elsewhere:
        arm(doc, name)["overrides"] = {"instance_type": "ml.p4d.24xlarge"}
        for run in runs(doc, name, "speed"):
            run["node"] = f"other{run['block']}"
    why = speed_step(doc, *open_arms).why

    assert (separate, not separate) == ("separate jobs" in why, "back to back" in why)


def full_step(
    doc: dict[str, Any], *, n_max: int = 12, lacks_baseline_only: bool = False
) -> QualityStep:
    evidence = read_evidence(doc)
    return next_quality(
        evidence, evidence.candidates[0], Design(history=0, n_max=n_max, error=0.05),
        lacks_baseline_only=lacks_baseline_only,
    )  # fmt: skip


def with_full_runs(ours: int, theirs: int, *, mode: str = "shadow", **plan: Any) -> dict[str, Any]:
    """Full runs of 2 h for the baseline at 2 USD, of 1 h for the candidate at 3 USD."""
    doc = {**document(policy={"quality_runs": mode}), "plan": {"production_beside": False, **plan}}
    turns = [(turn, name) for name, count in (("baseline", theirs), ("compile", ours))
             for turn in range(count)]  # fmt: skip
    for order, (turn, name) in enumerate(sorted(turns)):
        hours = 2 if name == "baseline" else 1
        run = quality_run(order, 17 + turn, 2.5 + 0.004 * (turn % 2), hours * HOUR)
        arm(doc, name)["runs"].append({**run, "mode": mode})
    for name in ("baseline", "compile"):
        arm(doc, name)["usd_per_hour"] = PRICES[name]
    return doc


def count(step: QualityStep, name: str) -> int:
    return sum(run.arm == name for run in step.runs)


@pytest.mark.parametrize(
    ("ours", "theirs", "plan", "runs_of", "usd"),
    [
        (3, 3, {}, (2, 2), 2 * 2 * 2 + 2 * 1 * 3),
        (3, 4, {}, (2, 1), 1 * 2 * 2 + 2 * 1 * 3),
        (3, 3, {"usd_per_quality_run": 2.25}, (2, 2), 4 * 2.25),
    ],
)
def test_extra_runs_cost_the_hours_of_each_arm_at_its_price_or_what_the_plan_says(
    ours, theirs, plan, runs_of, usd
):
    step = full_step(with_full_runs(ours, theirs, **plan))

    assert runs_of == (count(step, "compile"), count(step, "baseline"))
    assert pytest.approx(usd) == step.usd


def test_extra_runs_have_no_price_without_that_of_each_arm_among_them():
    doc = {**with_full_runs(3, 3), "usd_per_hour": None}
    del arm(doc, "baseline")["usd_per_hour"]

    assert full_step(doc).usd is None


@pytest.mark.parametrize(
    ("lacks_baseline_only", "ours", "theirs", "n_max", "runs_of"),
    [
        (False, 3, 0, 12, (1, 1)),
        (False, 3, 3, 12, (1, 1)),
        (False, 3, 4, 12, (1, 0)),
        (False, 3, 3, 3, (0, 1)),
        (True, 3, 0, 12, (0, 2)),
        (True, 3, 3, 12, (0, 1)),
    ],
    ids=[
        "before the last look", "as many of each", "the baseline is ahead", "at the last look",
        "only baselines", "one baseline at least",
    ],
)  # fmt: skip
def test_production_trains_each_arm_once_more_up_to_the_last_look(
    lacks_baseline_only, ours, theirs, n_max, runs_of
):
    doc = with_full_runs(ours, theirs, mode="canary")
    step = full_step(doc, n_max=n_max, lacks_baseline_only=lacks_baseline_only)

    assert runs_of == (count(step, "compile"), count(step, "baseline"))
    assert ("canary", 0.0) == (step.mode, step.usd)


@pytest.mark.parametrize(
    ("ours", "theirs", "last", "order"),
    [
        (3, 3, "compile", ["compile", "baseline"]),
        (3, 3, "baseline", ["baseline", "compile"]),
        (3, 1, "compile", ["baseline", "compile"]),
        (2, 2, "compile", ["baseline", "compile"]),
    ],
    ids=["took its turn", "the baseline's turn", "the baseline is behind", "a look is next"],
)
def test_in_production_the_arms_take_turns_and_a_look_sees_the_baselines_run(
    ours, theirs, last, order
):
    doc = with_full_runs(ours, theirs, mode="canary")
    runs(doc, last)[-1]["order"] = 100

    assert order == [run.arm for run in full_step(doc).runs]


def test_extra_runs_begin_with_the_baseline_even_before_the_first_look():
    doc = with_full_runs(0, 0)
    doc["quality"]["history"] = [2.5, 2.504] * 10
    step = full_step(doc)

    assert ["baseline", "compile"] == [run.arm for run in step.runs]


@pytest.mark.parametrize(
    ("made", "target", "beside", "walls", "expected"),
    [
        # Half as many as the candidate's prove, rounded up; as many are paid for.
        ((0, 0), 2, False, True, (1, 2)),
        ((0, 0), 5, False, True, (3, 5)),
        ((1, 2), 5, False, False, (1, 3)),
        ((1, 7), 5, False, False, (0, 0)),
        # Before the first look only a length is missing.
        ((0, 0), 1, False, False, (1, 1)),
        ((0, 0), 1, False, True, (0, 0)),
        ((0, 1), 1, False, False, (0, 0)),
        # Production makes one meanwhile, unless it has made none beside the candidate's so far.
        ((0, 0), 5, True, True, (3, 2)),
        ((3, 0), 5, True, True, (3, 5)),
        ((3, 1), 5, True, True, (2, 1)),
        ((3, 7), 5, True, True, (0, 0)),
        ((3, 2), 5, True, True, (1, 0)),
    ],
)
def test_baseline_runs_that_a_look_needs_and_those_that_are_paid_for(
    made, target, beside, walls, expected
):
    doc = with_full_runs(*made, production_beside=beside)
    doc["quality"]["history_wall_seconds"] = [HOUR] if walls else []
    evidence = read_evidence(doc)
    candidate = evidence.candidates[0]

    assert expected == (
        concurrent_runs_missing(candidate, evidence, target),
        paid_baseline_runs(candidate, evidence, target),
    )


DESIGN = Design(history=0, n_max=12, error=0.05)


@pytest.mark.parametrize(
    ("made", "margin", "mode", "remaining", "target"),
    [
        # By the next look where the margin is wide, by as many as it takes where it is not.
        ((0, 0), 0.02, "shadow", 100.0, 2),
        ((3, 3), 0.02, "shadow", 100.0, 5),
        ((3, 3), 0.0027, "shadow", 100.0, None),
        ((3, 3), 1e-6, "shadow", 100.0, 12),
        ((3, 3), 0.02, "shadow", 1.0, 5),
        # Two runs and one have no spread to go by yet, and two equal ones none at all.
        ((2, 1), 1e-6, "shadow", 100.0, 3),
        ((1, 5), 0.02, "hybrid", 100.0, 2),
        ((5, 5), 0.02, "hybrid", 100.0, 2),
        ((12, 12), 0.02, "shadow", 100.0, 12),
    ],
)
def test_extra_runs_are_worth_what_they_may_save_of_the_runs_to_come(
    made, margin, mode, remaining, target
):
    """At twice the speed and one and a half times the price a quarter of a run is saved."""
    doc = {**with_full_runs(*made), "runs_remaining": remaining}
    doc["quality"]["margin"], doc["policy"]["quality_runs"] = margin, mode
    evidence = read_evidence(doc)
    candidate = evidence.candidates[0]
    value = value_of_shadow_runs(candidate, evidence, DESIGN, 2.0)
    if target is None:
        spread = math.sqrt(samples_of(candidate, evidence).pooled_variance or 0.0)
        target = DESIGN.runs_needed(spread / margin, 0.5)
        assert target is not None
        assert 5 < target < 12

    more = max(target - made[0], 0)
    paid = paid_baseline_runs(candidate, evidence, target)
    assert value == InformationValue(
        pytest.approx(0.8 * max(remaining - more, 0) * 0.25), more * 0.75 + paid, more
    )


def test_a_step_that_brings_what_it_costs_pays():
    assert [False, True, True] == [InformationValue(gain, 1.0).pays for gain in (0.9, 1.0, 1.1)]
    assert 0 == InformationValue(1.0, 1.0).runs


@pytest.mark.parametrize(
    ("state", "made", "extra"),
    [
        (State.PASSED, 0, False),
        (State.UNEXAMINED, 0, True),
        (State.UNEXAMINED, 1, True),
        (State.UNEXAMINED, 2, False),
    ],
)
def test_a_hybrid_trials_first_runs_are_extra_unless_the_check_was_passed_before(
    monkeypatch, state, made, extra
):
    seen = []

    def checked(candidate: Arm, _: Evidence) -> Any:
        seen.append(candidate.quality)
        return SimpleNamespace(state=state)

    monkeypatch.setattr(following, "equivalence_of", checked)
    doc = with_full_runs(made, made)
    doc["policy"]["quality_runs"] = "hybrid"
    evidence = read_evidence(doc)

    assert extra is is_shadow(evidence, evidence.candidates[0])
    assert [()] == seen


def test_after_the_last_look_one_more_baseline_run_is_asked_for():
    step = full_step(with_full_runs(12, 12))

    assert ("shadow", 0, 1) == (step.mode, count(step, "compile"), count(step, "baseline"))


FIRST = ["baseline", "compile", "compile", "baseline"]
SECOND = ["compile", "baseline", "baseline", "compile"]


@pytest.mark.parametrize(
    ("made", "order"), [(0, FIRST), (2, SECOND), (5, FIRST + SECOND), (8, FIRST + SECOND)]
)
def test_jobs_of_pairs_begin_by_turns_with_either_arm(made, order):
    step = full_step(with_full_runs(made, made, pairs=True))

    assert order == [run.arm for run in step.runs]
    assert step.why.startswith("extra runs in pairs")


def test_production_makes_no_pairs():
    step = full_step(with_full_runs(3, 3, mode="canary", pairs=True))

    assert (1, 1) == (count(step, "compile"), count(step, "baseline"))


@pytest.mark.parametrize(
    ("mode", "made", "asked"),
    [("shadow", 1, 4), ("shadow", 5, 0), ("shadow", 9, 0), ("canary", 1, 1), ("canary", 9, 0)],
)
def test_what_is_on_catches_up_with_the_candidate(mode, made, asked):
    doc = with_full_runs(3, 3, mode=mode)
    add_candidate(doc, "on", speedup=1.2, metrics=[2.5] * made)
    evidence = replace(read_evidence(doc), on_top_of="on")
    step = next_quality(evidence, evidence.candidates[0], DESIGN, lacks_baseline_only=False)

    assert asked == count(step, "on")
