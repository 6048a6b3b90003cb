"""A trial asks for one step after another, one candidate at a time, and ends."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from tests.domain.evidence_builder import (
    GOOD,
    WORSE,
    add_candidate,
    arm,
    codes,
    document,
    full_runs,
    judge,
    next_step,
    quality_run,
    requested,
    runs,
    sample,
    step_of,
)

JOB = 65.0


def trial(mode: str, *, history: int = 0, sd: float = 0.004, **keys: Any) -> dict[str, Any]:
    """A candidate past its speed gate under a policy of that mode."""
    doc = {**document(policy={"quality_runs": mode}), **keys}
    doc["quality"]["history"] = sample(history, 2.5, sd)
    return doc


def run_full(doc: dict[str, Any], name: str, metric: float, *, mode: str = "shadow") -> None:
    """Append the next full run of an arm, on the seed that the judge would request."""
    order = 1 + max(run.get("order", -1) for item in doc["arms"] for run in item["runs"])
    seed = 17 + len(runs(doc, name))
    speedup = 1.0 if name == "baseline" else 1.4
    arm(doc, name)["runs"].append(quality_run(order, seed, metric, JOB / speedup))
    arm(doc, name)["runs"][-1]["mode"] = mode


def test_extra_runs_begin_with_two_or_one_and_go_on_to_the_next_look_on_seeds_of_their_own():
    first = trial("shadow")
    assert ("quality", "shadow") == (next_step(first)["stage"], next_step(first)["mode"])
    assert [("compile", 17), ("compile", 18)] == requested(judge(first))

    spared = trial("shadow", history=20, plan={"production_beside": False})
    spared["quality"]["history_wall_seconds"] = [JOB] * 20
    assert [("compile", 17)] == requested(judge(spared))

    after_three, used = trial("shadow"), trial("shadow")
    for value in sample(3, 2.5, 0.02):
        run_full(after_three, "compile", value)
        run_full(after_three, "baseline", value + 0.001, mode="production")
    run_full(used, "baseline", 2.5, mode="production")
    run_full(used, "compile", 2.5)
    runs(used)[0]["seed"] = 18
    assert [("compile", 20), ("compile", 21)] == requested(judge(after_three))
    assert [("compile", 17)] == requested(judge(used))


@pytest.mark.parametrize("mode", ["shadow", "hybrid", "canary"])
@pytest.mark.parametrize("remaining", [4, 5, 6, 11])
@pytest.mark.parametrize(("ours", "theirs"), [(2, 0), (2, 1), (3, 1), (1, 1), (0, 2), (5, 1)])
def test_whatever_goes_on_asks_for_at_least_one_run(mode, remaining, ours, theirs):
    doc = trial(mode)
    doc["runs_remaining"] = remaining
    for name, count in (("compile", ours), ("baseline", theirs)):
        for value in sample(count, 2.5, 0.004):
            run_full(doc, name, value)
    decision = judge(doc)

    assert (Verdict.CONTINUE == decision.verdict) == (decision.next is not None)
    if decision.next is not None:
        assert (step_of(decision) or {})["runs"]


@pytest.mark.parametrize("other", [{"speedup": 1.6}, {"speedup": 1.2, "usd_per_hour": 0.7}])
def test_the_greatest_saving_is_tested_first_and_alone(other):
    doc = document(speedup=1.3)
    add_candidate(doc, "other", **other)
    decision = judge(doc)

    assert "other" == decision.candidate
    assert {"other"} == {reason.arm for reason in decision.reasons}
    assert {"other"} == {name for name, _ in requested(decision)} - {"baseline"}


def test_the_second_candidate_is_tested_only_after_the_first_failed():
    doc = document(speedup=1.3, metrics={"baseline": GOOD["baseline"], "compile": []})
    add_candidate(doc, "faster", speedup=1.6, metrics=WORSE["compile"])
    decision = judge(doc)

    assert (Verdict.CONTINUE, "compile") == (decision.verdict, decision.candidate)
    assert {"quality_worse", "quality_needs_runs"} <= codes(decision)


def test_other_candidates_may_leave_too_few_runs_for_a_proof():
    doc = document(speedup=1.3, metrics={"baseline": GOOD["baseline"], "compile": []})
    add_candidate(doc, "faster", speedup=1.6, metrics=WORSE["compile"])
    for run in full_runs(doc):
        run["mode"] = "canary"
    decision = judge({**doc, "runs_remaining": 7})

    assert (Verdict.INCONCLUSIVE, "compile") == (decision.verdict, decision.candidate)
    assert ("saving_below_trial_cost", "speedup_proven", "quality_worse") == decision.codes[:3]


def test_a_trial_is_held_open_by_one_unproven_candidate_and_stays_off_when_all_failed():
    doc = document(speedup=1.3, metrics=WORSE)
    add_candidate(doc, "slow", speedup=0.8)
    all_failed = copy.deepcopy(doc)
    for run in runs(doc):
        run["metric"] = 2.5  # every run the same: nothing can be said of chance
    for run in runs(doc, "baseline"):
        run["metric"] = 2.5

    assert Verdict.STAY_OFF == judge(all_failed).verdict
    assert (Verdict.INCONCLUSIVE, "compile") == (judge(doc).verdict, judge(doc).candidate)


def test_whole_jobs_on_a_dearer_cluster_have_to_be_faster_by_its_price():
    doc = document(speedup=1.8, metrics=GOOD)
    for run in runs(doc):
        run["wall_seconds"] = JOB / 1.3
    assert Verdict.PROMOTE == judge(doc).verdict
    arm(doc)["usd_per_hour"] = 1.25 * doc["usd_per_hour"]

    assert Verdict.CONTINUE == judge(doc).verdict
    assert "full_run_disagrees" in codes(judge(doc))


def test_whole_jobs_conclusively_too_slow_end_the_trial_before_its_quality_is_known():
    doc = document(metrics={"baseline": GOOD["baseline"][:2], "compile": GOOD["compile"][:1]})
    runs(doc)[0]["wall_seconds"] *= 3

    assert Verdict.INCONCLUSIVE == judge(doc).verdict
    assert "full_run_disagrees" == judge(doc).reasons[0].code


def test_past_wall_clocks_stand_in_for_a_baseline_that_was_not_timed():
    doc = document(metrics=GOOD)
    for run in runs(doc, "baseline"):
        run["wall_seconds"] = None
    untimed = judge(doc)
    doc["quality"]["history_wall_seconds"] = [JOB, JOB]

    assert Verdict.CONTINUE == untimed.verdict
    assert "full_run_unmeasured" in codes(untimed)
    assert Verdict.PROMOTE == judge(doc).verdict
