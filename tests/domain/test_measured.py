"""The measured arms as reports show them: what was compared, with what, and how failures ended."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.arithmetic import mean
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.measured import (
    Block,
    ConfirmedFall,
    Measured,
    Reference,
    confirmed_fall,
    measure,
)
from compilegate.domain.judging.speed import block_log_speedups
from compilegate.domain.judging.steady_state import Segment
from tests.domain.evidence_builder import (
    BASE_WALL,
    CENTRE,
    GOOD,
    MINE_WALL,
    PROBATION_MARGIN,
    add_candidate,
    arm,
    document,
    judge,
    probation_document,
    runs,
    watch,
)


def measured_of(doc: dict[str, Any]) -> Measured:
    measured, _ = measure(doc, judge(doc))
    assert measured is not None
    return measured


@pytest.mark.parametrize(
    ("applied", "compiler", "said"),
    [
        (False, {"applied": False, "proof": "no graph"}, "no graph"),
        (False, {"applied": False, "proof": ""}, None),
        (False, "none", None),
        (True, {"applied": True, "proof": "kernels"}, None),
    ],
)
def test_the_first_run_without_the_change_is_named_with_its_compilers_words(
    applied, compiler, said
):
    evidence = document(metrics=GOOD)
    first, second, *_ = runs(evidence)
    first.update(finished=False, metric=None, applied=applied, compiler=compiler)
    second.update(applied=applied, compiler=compiler)
    measured = measured_of(evidence)

    ended = measured.lead.unapplied
    assert said == (ended and ended.said)
    assert ended is None or ended.run is measured.lead.arm.quality[1]


def test_the_first_run_that_failed_and_said_why_is_named():
    evidence = document(metrics=GOOD)
    sound, silent, loud, *_ = runs(evidence)
    sound.update(reason="a remark")
    silent.update(finished=False, metric=None, reason="")
    loud.update(finished=False, metric=None, reason="out of memory")
    measured = measured_of(evidence)

    assert (measured.lead.arm.quality[2], "out of memory") == (
        measured.lead.failed.run, measured.lead.failed.said,
    )  # fmt: skip
    assert measured.baseline.failed is None


def test_without_evidence_that_can_be_read_nothing_was_measured():
    decision = judge(document())
    none, broken = measure(None, decision), measure({"schema": 1}, decision)

    assert (None, None) == (none[0], broken[0])
    assert "No job was started" in none[1]
    assert "could not be read" in broken[1]


def test_the_baseline_comes_first_and_the_candidate_of_the_decision_next():
    doc = document()
    for name in ("first", "second"):
        add_candidate(doc, name, speedup=1.1)
    for lead in ("compile", "first", "second"):
        measured, _ = measure(doc, replace(judge(doc), candidate=lead))
        others = [name for name in ("compile", "first", "second") if name != lead]

        assert ["baseline", lead, *others] == [one.name for one in measured.arms]
        assert measured.baseline.name == "baseline"
        assert [lead, *others] == [one.name for one in measured.candidates]
        assert lead == measured.lead.name


def test_blocks_that_both_arms_completed_are_compared():
    doc = document(blocks=5)
    blocks, theirs = runs(doc, stage="speed"), runs(doc, "baseline", "speed")
    arm(doc, "baseline")["runs"].remove(theirs[0])
    arm(doc)["runs"].remove(blocks[1])
    for run in (blocks[2], theirs[4]):
        run["step_seconds"] = [0.02] * 10  # too short for a steady state
    measured, evidence = measured_of(doc), read_evidence(doc)
    lead, segments = measured.lead, evidence.segments["compile"]

    assert [0, 2, 3, 4] == [*lead.blocks]
    assert [segments[3], segments[4]] == lead.steady
    seconds = [segments[block].steady_step_seconds for block in (3, 4)]
    assert pytest.approx(mean(seconds)) == lead.steady_step_seconds
    assert {3: math.exp(*block_log_speedups(evidence.candidates[0], evidence))} == lead.speedups
    assert measured.has_speed


def test_samples_per_second_are_those_of_the_steady_step():
    run = read_evidence(document()).baseline.speed[0]
    block = Block(run, Segment(20, 0.1, 0.0))

    assert pytest.approx(320.0) == block.samples_per_second
    assert replace(block, segment=None).samples_per_second is None
    unknown = replace(block, run=replace(run, samples_per_step=None))
    assert unknown.samples_per_second is None


@pytest.mark.parametrize("step", [0.0, -1.0, 0.03])
def test_a_broken_step_leaves_no_segment_to_show(step):
    doc = document()
    runs(doc, stage="speed")[1]["step_seconds"][50] = step
    measured, _ = measure(doc, judge(document()))

    assert [3 * (step > 0)] * 2 == [len(one.steady) for one in measured.arms]
    assert [3 * (step > 0)] * 2 == [len(one.speedups) for one in measured.arms]


def test_bars_are_ratios_of_times_at_the_price_of_the_lead():
    doc = document(policy={"min_proven_speedup": 1.2, "min_mean_speedup": 1.4})
    arm(doc)["usd_per_hour"] = 1.25 * doc["usd_per_hour"]
    without = document()
    for name in ("baseline", "compile"):
        arm(without, name)["runs"] = []
    half = document()
    arm(half)["runs"] = []
    for run in runs(doc, stage="speed"):
        run["node"] = f"other {run['node']}"

    assert pytest.approx((1.5, 1.75)) == measured_of(doc).thresholds
    assert (True, False) == (measured_of(doc).apart, measured_of(document()).apart)
    assert (True, False) == (measured_of(half).has_speed, measured_of(without).has_speed)


def test_a_probation_compares_its_runs_with_all_of_the_baseline():
    doc = watch(watch(probation_document()), "baseline")
    trial = measured_of({**doc, "phase": "trial", "promoted": None})
    measured = measured_of(doc)

    assert (4, 1) == (len(measured.baseline.compared), len(measured.lead.compared))
    assert (3, 3) == (len(trial.baseline.compared), len(trial.lead.compared))
    assert Reference(pytest.approx(CENTRE, abs=0.003), "4 baseline runs") == measured.reference


LATE = {"baseline": [2.500, 2.504, 2.498, 2.600], "compile": [2.501, 2.503, 2.499, 2.499]}
# Up to the look at three, and of all four.
AT_LOOK, EVERY = (Reference(pytest.approx(mean(LATE["baseline"][:n])), f"{n} baseline runs")
                  for n in (3, 4))  # fmt: skip


@pytest.mark.parametrize(
    ("metrics", "history", "judged", "expected"),
    [
        # A loss: higher is better of its negative.
        (LATE, [], {"look": 3, "estimate": -0.0003}, AT_LOOK),
        (LATE, [], {"look": 3, "estimate": 0.025}, EVERY),
        (LATE, [], {"look": None, "estimate": -0.0003}, EVERY),
        (LATE, [], {"look": 3, "estimate": None}, EVERY),
        (LATE, [], {"look": 1, "estimate": 0.001}, EVERY),
        (LATE, [], None, EVERY),
        ({"baseline": [2.5], "compile": [2.6]}, [], {"look": 3, "estimate": 0.1},
         Reference(2.5, "1 baseline run")),
        # The last one before the candidate's first.
        ({"baseline": [2.5, 2.7]}, [2.0], None, Reference(2.7, "1 baseline run")),
        ({}, [2.5, 2.7, 2.9], None, Reference(pytest.approx(2.7), "3 past runs")),
        ({}, [], None, None),
    ],
)  # fmt: skip
def test_the_reference_is_what_the_decisions_difference_is_counted_from(
    metrics, history, judged, expected
):
    doc = document(metrics=metrics)
    doc["quality"]["history"] = history
    figures = judged and replace(judge(document(metrics=GOOD)).quality, **judged)

    assert expected == replace(measured_of(doc), judged=figures).reference


def confirmed(
    loss: float = 0.0, slower: float = 1.0, *, checked: int = 6, crash: bool = False
) -> dict[str, Any]:
    """Three runs of production that lose so much, or a crash, and a check of it that does."""
    doc = probation_document()
    fallen = {"metric": CENTRE - loss, "wall_seconds": slower * MINE_WALL}
    for _ in range(1 if crash else 3):
        watch(doc, **fallen | ({"metric": None} if crash else {}))
    for name in ("baseline", "compile", "compile", "baseline", "baseline", "compile")[:checked]:
        keys = fallen if name == "compile" else {"metric": CENTRE, "wall_seconds": BASE_WALL}
        watch(doc, name, confirm=True, **keys)
    return doc


def minimised(doc: dict[str, Any]) -> dict[str, Any]:
    """The same of a metric that is the better the lower it is."""
    doc["quality"] |= {"goal": "minimize", "history": [-x for x in doc["quality"]["history"]]}
    for run in (run for one in doc["arms"] for run in one["runs"] if "metric" in run):
        run["metric"] = -run["metric"]
    return doc


LOSS = 2 * PROBATION_MARGIN


@pytest.mark.parametrize(
    ("doc", "delta", "speedup"),
    [
        (confirmed(LOSS), -LOSS, None),
        (minimised(confirmed(LOSS)), LOSS, None),
        (confirmed(slower=1.5), None, BASE_WALL / (1.5 * MINE_WALL)),
        # A crash casts doubt on both, and the last that fell decides.
        (confirmed(LOSS, crash=True), -LOSS, None),
        (confirmed(LOSS, 1.5, crash=True), None, BASE_WALL / (1.5 * MINE_WALL)),
    ],
)
def test_a_confirmed_fall_is_shown_in_the_metrics_unit_or_as_a_ratio_of_times(doc, delta, speedup):
    decision, evidence = judge(doc), read_evidence(doc)
    fall = confirmed_fall(decision, evidence)
    shown = ConfirmedFall(
        fall.look, *(None if one is None else pytest.approx(one) for one in (delta, speedup))
    )

    assert shown == fall
    assert fall.look.fall.ours == 3
    assert confirmed_fall(replace(decision, judge_version="0"), evidence) is None
    assert confirmed_fall(replace(decision, reasons=()), evidence) is None
    assert confirmed_fall(decision, replace(evidence, phase="trial")) is None


def test_an_alarm_that_no_check_has_confirmed_is_no_fall():
    doc = confirmed(LOSS, checked=2)

    assert confirmed_fall(judge(doc), read_evidence(doc)) is None
