"""The one step that an open trial asks for next: how much of it, in which order, at what price."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import QualityStep, SpeedStep
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.next_step import next_quality, next_speed
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


def test_two_more_blocks_cost_what_the_last_one_of_each_open_arm_took():
    step = speed_step(measured())

    assert (2, ("baseline", "compile")) == (step.blocks, step.arms)
    assert pytest.approx(2 * (8 * 2 + 5 * 3)) == step.usd


def test_a_plan_with_a_price_for_a_block_says_what_two_cost():
    assert 2 * 7.5 == speed_step(measured(usd_per_block=7.5)).usd


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
