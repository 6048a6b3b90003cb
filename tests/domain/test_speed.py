"""The speed gate: blocks are the replicates, losers end early, winners are proven."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.evidence import TrialPlan
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.speed import (
    SPEED_LOOKS,
    SpeedOutcome,
    SpeedTest,
    best_case,
    block_log_speedups,
    judge_speed,
    lost_seconds,
)
from compilegate.domain.workload.model import Policy
from tests.domain.evidence_builder import (
    among,
    arm,
    codes,
    document,
    judge,
    runs,
    step_of,
    words,
)

MOST = TrialPlan().max_blocks
POLICY = Policy()


def with_block_speedups(speedups: Sequence[float]) -> dict[str, Any]:
    """Blocks of exactly these full-run speed-ups."""
    doc = document(blocks=len(speedups), compile_seconds=0)
    bases = runs(doc, "baseline", "speed")
    for mine, base, speedup in zip(runs(doc, stage="speed"), bases, speedups, strict=True):
        mine["step_seconds"] = [seconds / speedup for seconds in base["step_seconds"]]
    return doc


UNSETTLED, BELOW, EITHER = [1.2, 1.5, 1.2, 1.5], [1.155, 1.165, 1.16, 1.158, 1.162, 1.16], [1, 1.6]
# Blocks, the code of what they show, and the first and the number of blocks asked for next.
BLOCKS: dict[str, tuple[list[float], str, tuple[int, int] | None]] = {
    **{f"a loser of {one}": ([one], "speedup_too_small", None) for one in (0.7, 0.9, 0.95)},
    "one that may be below": (BELOW[:1], "speed_needs_blocks", (1, 2)),
    **{f"{n} that are faster but below": (BELOW[:n], "speedup_below_promote", None)
       for n in (4, 5, MOST)},
    "one, two before the first look": (UNSETTLED[:1], "speed_needs_blocks", (1, 2)),
    "the first look": (UNSETTLED[:3], "speed_needs_blocks", (3, 1)),
    "the second look": (UNSETTLED, "speed_needs_blocks", (4, 2)),
    **{f"all, of either side: {blocks}": (blocks * 3, "speed_inconclusive", None)
       for blocks in (EITHER, [1.0, 1.2])},
    "all, above the bar but not clearly": (
        [1.16, 1.23, 1.17, 1.22, 1.16, 1.24], "speed_inconclusive", None),
    "a fifth that no look sees, after a proof": ([1.30, 1.31, 1.30, 1.31, 2.2],
                                                 "speedup_proven", None),
    "a fifth that no look sees, after none": ([*EITHER, *EITHER, 1.3],
                                              "speed_needs_blocks", (5, 1)),
}  # fmt: skip
VERDICTS = {
    "speedup_too_small": Verdict.STAY_OFF, "speedup_below_promote": Verdict.STAY_OFF,
    "speed_needs_blocks": Verdict.CONTINUE, "speed_inconclusive": Verdict.INCONCLUSIVE,
    "speedup_proven": Verdict.CONTINUE,
}  # fmt: skip


@pytest.mark.parametrize("what", BLOCKS)
def test_blocks_settle_the_speed_or_ask_for_those_of_the_next_look(what):
    speedups, code, asked = BLOCKS[what]
    decision = judge(with_block_speedups(speedups))
    requested = step_of(decision) or {}

    assert (VERDICTS[code], True) == (decision.verdict, code in codes(decision))
    assert ("quality" if code == "speedup_proven" else "speed") == decision.stage
    assert asked == ((requested["block"], requested["blocks"]) if "block" in requested else None)


@pytest.mark.parametrize("candidates", [1, 2, 3])
def test_bounds_are_students_t_over_blocks_and_candidates_share_the_error(candidates):
    evidence = among(read_evidence(with_block_speedups([1.30, 1.36, 1.33])), candidates)
    candidate = evidence.candidates[0]
    finding = judge_speed(candidate, evidence)
    logs = [math.log(speedup) for speedup in (1.30, 1.36, 1.33)]
    error = stats.sem(logs)
    both = stats.t.interval(0.95, 2, loc=sum(logs) / 3, scale=error)
    level = POLICY.alpha / (len(SPEED_LOOKS) * candidates)
    lower = sum(logs) / 3 - stats.t.isf(level, 2) * error

    assert pytest.approx(logs) == block_log_speedups(candidate, evidence)
    assert pytest.approx(math.exp(sum(logs) / 3)) == finding.estimate
    assert finding.interval is not None
    assert pytest.approx([math.exp(x) for x in both]) == list(finding.interval)
    assert pytest.approx(math.exp(lower)) == finding.lower_bound
    one, two = (replace(finding, logs=finding.logs[:n]) for n in (1, 2))
    assert (None, None) == (one.interval, one.lower_bound)
    assert None not in (two.interval, two.lower_bound)


BELOW_GOAL = "significantly below the required 1.00x"
LONGER = "it takes significantly longer than the baseline, which rules it out at any price"
# Blocks, log of the price ratio, least proven speed-up: outcome and reason. The goal is 1.
TESTED: list[tuple[list[float], float, float, tuple[SpeedOutcome, str]]] = [
    ([-0.7], 0.0, 0.9, (SpeedOutcome.TOO_SLOW, BELOW_GOAL)),
    ([-0.7], -0.1, 0.9, (SpeedOutcome.TOO_SLOW, LONGER)),
    ([0.1], 0.8, 0.9, (SpeedOutcome.TOO_SLOW, f"{BELOW_GOAL} in dollars")),
    ([-math.log(2)], 0.0, 0.5, (SpeedOutcome.BELOW_PROMOTE, f"faster, but {BELOW_GOAL}")),
    ([-0.01, 0.0, 0.01], 0.0, 0.5, (SpeedOutcome.PASSED, "proven above 0.50x")),
    ([-0.02, 0.01] * 3, 0.0, 0.5,
     (SpeedOutcome.INCONCLUSIVE, "faster, but not clearly above the required 1.00x")),
    # Proven by three of them, not by all four.
    ([0.30, 0.31, 0.30, -0.5], 0.0, 0.5,
     (SpeedOutcome.MORE_BLOCKS, "4 blocks are not conclusive yet")),
    ([-0.01, 0.0, 0.01], 0.0, 1.0, (SpeedOutcome.MORE_BLOCKS, "3 blocks are not conclusive yet")),
]  # fmt: skip


@pytest.mark.parametrize(("logs", "cost", "least", "expected"), TESTED)
def test_blocks_are_tested_in_dollars_where_prices_differ(logs, cost, least, expected):
    policy = replace(POLICY, min_proven_speedup=least, min_mean_speedup=1.0)

    assert expected == SpeedTest(policy, 0.01, 6, 0.03).outcome(logs, logs, cost)
    assert SpeedOutcome.MORE_BLOCKS is SpeedTest(policy, 0.01, 1, 0.03).outcome([], [])[0]


@pytest.mark.parametrize(
    ("logs", "calm", "most"),
    [([0.1], [], 0.1 + 0.24), ([0.1, 0.3], [0.2, 0.6], 0.4 + 0.24 / math.sqrt(2)),
     ([0.1, 0.3, 0.2], [0.5] * 3, 0.2 + stats.t.isf(0.01, 2) * 0.1 / math.sqrt(3))],
)  # fmt: skip
def test_one_or_two_blocks_are_judged_calm_and_by_the_assumed_spread(logs, calm, most):
    assert pytest.approx(most) == best_case(logs, 0.05, calm, 0.08)


def test_seconds_outside_the_steps_are_added_to_each_arms_own_run():
    evidence = read_evidence(with_block_speedups([1.3, 1.4]))
    candidate = evidence.candidates[0]
    steps, lost = evidence.baseline.steps_or_one, lost_seconds(candidate, evidence)
    ratios = [
        (base.full_run_seconds(steps) + lost + 1000) / (mine.full_run_seconds(steps) + lost + 3000)
        for base, mine in evidence.steady_pairs(candidate)
    ]

    logs = block_log_speedups(candidate, evidence, outside=(1000, 3000))
    assert pytest.approx([math.log(one) for one in ratios]) == logs


def test_blocks_of_the_baseline_alone_do_not_count_against_the_limit():
    evidence = read_evidence(with_block_speedups([*EITHER, *EITHER, *EITHER]))
    candidate = evidence.candidates[0]
    some = replace(candidate, speed=candidate.speed[:4])

    assert SpeedOutcome.INCONCLUSIVE == judge_speed(candidate, evidence).outcome
    assert SpeedOutcome.MORE_BLOCKS == judge_speed(some, evidence).outcome


def test_a_segment_that_failed_before_it_could_tell_is_a_crash_not_a_missing_treatment():
    doc = document()
    runs(doc, stage="speed")[0].update(finished=False, step_seconds=[], applied=None)

    assert {"candidate_crashed"} == codes(judge(doc))


def test_a_baseline_that_fails_in_a_block_proves_nothing():
    doc = document()
    runs(doc, "baseline", "speed")[0].update(finished=False, step_seconds=[])

    assert (Verdict.INCONCLUSIVE, {"baseline_failed"}) == (judge(doc).verdict, codes(judge(doc)))
    assert "the baseline failed in a speed block" in words(judge(doc))


def test_copied_blocks_prove_nothing():
    doc = document(blocks=1)
    for name in ("baseline", "compile"):
        first = runs(doc, name, "speed")[0]
        arm(doc, name)["runs"] += [
            {**copy.deepcopy(first), "block": block} for block in range(1, MOST)
        ]

    assert Verdict.INCONCLUSIVE == judge(doc).verdict


def test_segments_too_short_for_a_steady_state_count_against_the_limit_alone():
    few, every = document(blocks=3), document(blocks=MOST)
    for doc in (few, every):
        for run in runs(doc, stage="speed"):
            run["step_seconds"] = run["step_seconds"][:30]

    assert Verdict.CONTINUE == judge(few).verdict
    assert Verdict.INCONCLUSIVE == judge(every).verdict
    assert "too short" in words(judge(every))


@given(nodes=st.lists(st.floats(0.5, 2), min_size=3, max_size=3))
def test_a_nodes_own_speed_cancels_inside_its_block(nodes):
    doc = document()
    expected = judge(doc).speedup
    for name in ("baseline", "compile"):
        for run, node in zip(runs(doc, name, "speed"), nodes, strict=True):
            run["step_seconds"] = [seconds * node for seconds in run["step_seconds"]]
            run["compile_seconds"] *= node

    figures = judge(doc).speedup
    assert pytest.approx(expected.estimate, rel=1e-9) == figures.estimate
    assert pytest.approx(expected.interval, rel=1e-6) == figures.interval


def test_a_longer_full_run_of_the_candidate_is_counted_in_its_steps():
    doc = with_block_speedups([1.5, 1.51, 1.49])
    arm(doc)["full_run_steps"] = 3000
    for run in runs(doc, stage="speed"):
        run["samples_per_step"] *= 2 / 3

    figures = judge(doc).speedup
    assert pytest.approx(1.0, rel=0.01) == figures.estimate
