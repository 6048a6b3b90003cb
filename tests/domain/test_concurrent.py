"""Which runs a candidate is compared with: those of its own weeks, and no seed twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.comparison import compare, compared_runs, samples_of
from compilegate.domain.judging.evidence_file import read_evidence
from tests.domain.evidence_builder import (
    GOOD,
    add_candidate,
    arm,
    codes,
    document,
    judge,
    quality_run,
    runs,
    sample,
)

MARGIN, SD = 0.02, 0.004


def in_turns(*turns: tuple[str, float], **keys: Any) -> dict[str, Any]:
    """Two candidates past their speed gate, and these full runs one after the other."""
    doc = document(goal="maximize", margin=MARGIN, policy={"quality_runs": "canary"}, **keys)
    add_candidate(doc, "second", speedup=1.3, overrides={"compiler": "torch_compile"})
    for order, (name, metric) in enumerate(turns):
        run = quality_run(order, 100 + order, metric, 65.0 if name == "baseline" else 46.0)
        arm(doc, name)["runs"].append({**run, "mode": "canary"})
    return doc


def orders(doc: dict[str, Any], name: str) -> tuple[list[int], list[int]]:
    """Orders of the baseline runs of the candidate's weeks, and of the earlier ones."""
    evidence = read_evidence(doc)
    candidate = next(one for one in evidence.candidates if one.name == name)
    _, *theirs = compared_runs(candidate, evidence)
    baseline, earlier = ([run.order for run in runs] for runs in theirs)
    return baseline, earlier


def test_the_weeks_of_a_candidate_begin_with_the_baseline_run_before_its_first():
    turns = [("baseline", 0.9), ("baseline", 0.9), ("compile", 0.9), ("baseline", 0.9),
             ("second", 0.9), ("baseline", 0.9), ("second", 0.9)]  # fmt: skip
    doc = in_turns(*turns)

    assert ([1, 3, 5], [0]) == orders(doc, "compile")
    assert ([3, 5], [0, 1]) == orders(doc, "second")
    assert (0, 1) == samples_of(read_evidence(doc).candidates[1], read_evidence(doc)).after


def test_a_second_candidate_is_not_compared_with_the_weeks_of_the_first():
    """The metric rises by 1.5 margins while the first is rejected; the second loses 1.2.

    Against all baseline runs of the trial it would lose less than a third of a margin.
    """
    lows, highs = sample(8, 0.9, SD), sample(5, 0.9 + 1.5 * MARGIN, SD)
    turns = [turn for low in lows for turn in (("baseline", low), ("compile", low - 3 * MARGIN))]
    turns += [turn for high in highs
              for turn in (("baseline", high), ("second", high - 1.2 * MARGIN))]  # fmt: skip
    doc = in_turns(*turns)
    decision = judge(doc)

    assert "quality_held" not in codes(decision)
    evidence = read_evidence(doc)
    compared = compare(samples_of(evidence.candidates[1], evidence))
    assert compared.difference < -0.75 * MARGIN


def test_productions_own_runs_may_repeat_a_seed_and_count_once():
    doc = document(metrics={"baseline": GOOD["baseline"], "compile": GOOD["compile"][:2]})
    for run in runs(doc, "baseline"):
        run.update(seed=42, mode="production")
    decision = judge(doc)

    assert Verdict.CONTINUE == decision.verdict
    assert "seeds_repeated" not in codes(decision)
    assert 1 == len(orders_of_baseline(doc))


def orders_of_baseline(doc: dict[str, Any]) -> list[int]:
    evidence = read_evidence(doc)
    return [run.order for run in compared_runs(evidence.candidates[0], evidence)[1]]


@given(more=st.lists(st.floats(0.85, 0.95), min_size=1, max_size=4), sd=st.floats(0.001, 0.02))
def test_a_look_is_one_test_whatever_baseline_runs_come_after_it(more, sd):
    ours, theirs = sample(3, 0.9, sd), sample(3, 0.9, sd)
    turns = [turn for pair in zip(theirs, ours, strict=True)
             for turn in zip(("baseline", "compile"), pair, strict=True)]  # fmt: skip
    first = in_turns(*turns)
    later = in_turns(*turns, *(("baseline", value) for value in more))

    held = ["quality_held" in codes(judge(doc)) for doc in (first, later)]
    assert held[0] == held[1]
