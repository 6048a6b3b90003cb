"""Arms on other clusters: nodes of their own, dollars both ways, controls beside them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.speed import (
    ASSUMED_APART_SD,
    BLOCK_SD,
    SPEED_LOOKS,
    SpeedOutcome,
    SpeedTest,
    assumed_spread,
    judge_speed,
)
from compilegate.domain.workload.model import Policy
from tests.domain.evidence_builder import arm, document, runs

OTHER = {"instance_type": "ml.p4d.24xlarge"}
HELD = [2.500, 2.501, 2.499]


def apart(
    speedup: float, price: float, *, blocks: int = 3, node_sd: float = 0.0, full: bool = False,
    overrides: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A trial whose candidate ran on other nodes, at ``price`` times the baseline's per hour."""
    chance = random.Random(f"{speedup}-{price}-{blocks}")
    metrics = {"baseline": HELD, "compile": HELD} if full else None
    doc = document(speedup=speedup, blocks=blocks, metrics=metrics, compile_seconds=0.0)
    candidate = arm(doc)
    candidate.update(
        usd_per_hour=doc["usd_per_hour"] * price,
        overrides=OTHER if overrides is None else overrides,
    )
    for run in runs(doc, "compile", "speed"):
        node = 1 + node_sd * chance.gauss(0, 1)
        run.update(
            node=f"other{run['block']}", step_seconds=[s * node for s in run["step_seconds"]]
        )
    return doc


def outcome(doc: dict[str, Any]) -> tuple[str, str]:
    evidence = read_evidence(doc)
    finding = judge_speed(evidence.candidates[0], evidence)
    return str(finding.outcome), finding.reason


@pytest.mark.parametrize(
    ("speedup", "price", "expected"),
    [
        (1.0, 0.5, "passed"),  # as fast at half the price
        (1.3, 1.0, "passed"),
        (1.6, 2.0, "too_slow"),  # faster, and dearer for every run
        (2.6, 2.0, "passed"),
        (0.8, 0.3, "too_slow"),  # cheaper, and longer than today
        (1.05, 0.95, "below_promote"),
    ],
)
def test_dollars_per_run_decide_where_prices_differ(speedup, price, expected):
    assert expected == outcome(apart(speedup, price))[0]


@given(price=st.floats(0.2, 5.0), speedup=st.floats(0.5, 3.0))
def test_what_costs_more_a_run_never_passes(price, speedup):
    reached, _ = outcome(apart(speedup, price))

    assert not (reached == "passed" and speedup / price < 1.05)


def test_the_assumed_spread_follows_the_nodes_that_were_used():
    same, other = read_evidence(document()), read_evidence(apart(1.0, 1.0))

    assert BLOCK_SD == assumed_spread(same.candidates[0], same)
    assert ASSUMED_APART_SD == assumed_spread(other.candidates[0], other)
    unknown = apart(1.0, 1.0, blocks=1)
    for name in ("baseline", "compile"):
        runs(unknown, name, "speed")[0]["node"] = None
    parsed = read_evidence(unknown)
    assert ASSUMED_APART_SD == assumed_spread(parsed.candidates[0], parsed)


def share_passed(speedup: float, trials: int = 2000) -> float:
    """Share of arms of this speed-up that pass the gate, on nodes that differ by 8 % each."""
    chance, passed = random.Random(7), 0
    test = SpeedTest(Policy(), Policy().alpha / 3, 6, ASSUMED_APART_SD)
    for _ in range(trials):
        logs: list[float] = []
        reached = SpeedOutcome.MORE_BLOCKS
        while reached is SpeedOutcome.MORE_BLOCKS:
            logs.append(math.log(speedup) + chance.gauss(0, 0.08 * math.sqrt(2)))
            if len(logs) in (1, *SPEED_LOOKS):
                reached, _ = test.outcome(logs, logs)
        passed += reached is SpeedOutcome.PASSED
    return passed / trials


def test_nodes_that_differ_pass_a_slow_arm_no_more_often_than_promised():
    assert share_passed(1.0999) <= Policy().alpha
    assert 0 == share_passed(0.9)
