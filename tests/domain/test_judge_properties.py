"""What holds for any evidence: order, direction, units and repetition change no verdict."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compilegate.domain.codec import write
from compilegate.domain.decision import Decision, Verdict
from tests.domain.evidence_builder import document, judge, runs, sample, step_of
from tests.domain.evidence_strategies import MARGIN, any_evidence, trials
from tests.fuzzing import at_most

SECONDS = ("compile_seconds", "wall_seconds")
QUALITY_UNITS = ("estimate", "interval", "margin", "spread", "provable_margin")
slow = at_most(100)


def outline(decision: Decision) -> dict[str, Any]:
    """A decision without the order in which arms and equal reasons are listed."""
    document = decision.to_dict("/f")
    document["arms"] = sorted(document["arms"], key=lambda item: str(item["name"]))
    document["reasons"] = sorted(document["reasons"], key=str)
    return document


def judged(decision: Decision) -> dict[str, Any]:
    """What a decision comes to, without figures in units."""
    step = {key: value for key, value in (step_of(decision) or {}).items() if key != "usd"}
    return {
        "verdict": decision.verdict,
        "stage": decision.stage,
        "candidate": decision.candidate,
        "codes": [reason.code for reason in decision.reasons],
        "next": step,
    }


def scaled(value: Any, factor: float) -> Any:
    if isinstance(value, list | tuple):
        return [scaled(item, factor) for item in value]
    return None if value is None else value * factor


def with_metrics(doc: dict[str, Any], change: Callable[[float], float]) -> dict[str, Any]:
    other = copy.deepcopy(doc)
    other["quality"]["history"] = [change(x) for x in other["quality"].get("history", [])]
    for item in other["arms"]:
        for run in item["runs"]:
            if run.get("metric") is not None:
                run["metric"] = change(run["metric"])
    return other


def in_metric_unit(doc: dict[str, Any], factor: float) -> dict[str, Any]:
    other = with_metrics(doc, lambda x: x * factor)
    other["quality"]["margin"] *= factor
    return other


def in_time_unit(doc: dict[str, Any], factor: float) -> dict[str, Any]:
    other = copy.deepcopy(doc)
    past = other["quality"].get("history_wall_seconds", [])
    other["quality"]["history_wall_seconds"] = [x * factor for x in past]
    for item in other["arms"]:
        for run in item["runs"]:
            for key in SECONDS:
                run[key] = run[key] * factor if run.get(key) is not None else None
            run["step_seconds"] = [x * factor for x in run.get("step_seconds", [])]
    return other


@given(doc=any_evidence, seed=st.integers(0, 99))
@slow
def test_the_order_in_which_arms_and_runs_are_listed_changes_nothing(doc, seed):
    expected, rng = outline(judge(doc)), random.Random(seed)
    other = copy.deepcopy(doc)
    rng.shuffle(other["arms"])
    for item in other["arms"]:
        rng.shuffle(item["runs"])

    assert expected == outline(judge(other))


@given(doc=any_evidence)
@slow
def test_a_decision_is_that_of_its_evidence_to_the_bit(doc):
    before, other = copy.deepcopy(doc), copy.deepcopy(doc)
    decision, again = judge(doc), judge(json.loads(json.dumps(doc)))
    steps = other["arms"][0]["runs"][0]["step_seconds"]
    steps[-1] = math.nextafter(steps[-1], 1)

    assert before == doc
    assert json.dumps(decision.to_dict("/f")) == json.dumps(again.to_dict("/f"))
    assert decision.decision_id != judge(other).decision_id


@given(doc=any_evidence)
@slow
def test_turning_the_metric_around_turns_nothing_else(doc):
    other = with_metrics(doc, lambda x: -x)
    other["quality"]["goal"] = {"maximize": "minimize", "minimize": "maximize"}[
        doc["quality"]["goal"]
    ]
    one, two = judge(doc), judge(other)

    assert judged(one) == judged(two)
    assert (one.speedup, one.saving) == (two.speedup, two.saving)
    assert (one.quality is None) == (two.quality is None)
    if one.quality and two.quality:
        assert replace(one.quality, goal="") == replace(two.quality, goal="")


@given(doc=any_evidence, power=st.integers(-45, 45))
@slow
def test_the_metrics_unit_scales_its_figures_and_nothing_else(doc, power):
    """By a power of two, which rounds nothing, exactly."""
    one, two = judge(doc), judge(in_metric_unit(doc, 2.0**power))

    assert judged(one) == judged(two)
    assert (one.speedup, one.saving) == (two.speedup, two.saving)
    assert (one.quality is None) == (two.quality is None)
    before, after = write(one.quality), write(two.quality)
    for key in QUALITY_UNITS if before else ():
        assert scaled(before[key], 2.0**power) == after[key], key


@given(doc=any_evidence, power=st.integers(-8, 8))
@slow
def test_the_unit_of_time_scales_the_money_and_nothing_else(doc, power):
    one, two = judge(doc), judge(in_time_unit(doc, 2.0**power))

    assert judged(one) == judged(two)
    assert one.quality == two.quality
    if one.speedup and two.speedup:
        assert pytest.approx(one.speedup.estimate, rel=1e-12) == two.speedup.estimate
    if one.saving and two.saving:
        expected = scaled(two.saving.usd_per_run, 2.0**-power)
        assert pytest.approx(one.saving.usd_per_run, rel=1e-9) == expected


@given(doc=trials(), slower=st.floats(1, 3), loss=st.just(0.0) | st.floats(0, 3))
@slow
def test_a_slower_or_worse_candidate_is_never_promoted_for_it(doc, slower, loss):
    assume(len(doc["arms"]) == 2)
    other = copy.deepcopy(doc)
    for run in runs(other, stage="speed"):
        run["step_seconds"] = [x * slower for x in run["step_seconds"]]
    for run in runs(other):
        run["wall_seconds"] *= slower
        run["metric"] += loss * MARGIN

    if Verdict.PROMOTE == judge(other).verdict:
        assert Verdict.PROMOTE == judge(doc).verdict


@given(doc=trials(), alpha=st.floats(0.001, 0.05), wider=st.floats(1, 4))
@slow
def test_a_promotion_outlives_a_larger_error_and_a_wider_margin(doc, alpha, wider):
    strict, lax = copy.deepcopy(doc), copy.deepcopy(doc)
    strict["policy"]["alpha"] = alpha
    lax["quality"]["margin"] *= wider

    if Verdict.PROMOTE == judge(strict).verdict:
        assert Verdict.PROMOTE == judge(doc).verdict
    if Verdict.PROMOTE == judge(doc).verdict:
        assert Verdict.PROMOTE == judge(lax).verdict


@given(blocks=st.integers(3, 6), n=st.integers(3, 12), loss=st.floats(0, 0.4))
@slow
def test_more_of_the_same_evidence_never_turns_a_promotion_off(blocks, n, loss):
    doc = document(
        blocks=blocks,
        margin=MARGIN,
        metrics={"baseline": sample(n, 2.5, 0.002),
                 "compile": sample(n, 2.5 + loss * MARGIN, 0.002)},
    )  # fmt: skip

    assert judge(doc).verdict in (Verdict.PROMOTE, Verdict.CONTINUE)
