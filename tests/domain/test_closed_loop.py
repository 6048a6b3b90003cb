"""A trial that does what the judge requests, until it has a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.judging.design import SCHEDULE
from tests.domain.evidence_builder import (
    arm,
    document,
    judge,
    quality_run,
    runs,
    sample,
    speed_run,
    step_of,
)

Metric = Callable[[str, int], float]
STEP, JOB = 0.03, 65.0


def answer(doc: dict[str, Any], step: dict[str, Any], speeds: dict[str, float], metric: Metric
           ) -> None:  # fmt: skip
    """Make the runs that ``next`` asks for, on machines of known truth."""
    if step["stage"] == "speed":
        for block in range(step["block"], step["block"] + step["blocks"]):
            for name in step["arms"]:
                arm(doc, name)["runs"].append(speed_run(block, STEP / speeds[name], seed=len(name)))
        return
    for run in step["runs"]:
        order = 1 + max(run.get("order", -1) for item in doc["arms"] for run in item["runs"])
        value = metric(run["arm"], len(runs(doc, run["arm"])))
        wall = JOB / speeds[run["arm"]]
        arm(doc, run["arm"])["runs"].append(quality_run(order, run["seed"], value, wall))
        arm(doc, run["arm"])["runs"][-1]["mode"] = step["mode"]


@pytest.mark.parametrize("mode", ["shadow", "hybrid", "canary"])
@pytest.mark.parametrize("history", [0, 8])
@pytest.mark.parametrize(
    ("truth", "verdict"),
    [
        ((1.4, 0.0, 0.004), "promote"),
        ((1.4, 0.05, 0.004), "stay_off"),
        ((1.0, 0.0, 0.004), "stay_off"),
        ((1.4, 0.0, 0.1), "inconclusive"),
        ((1.15, 0.0, 0.004), "stay_off"),
    ],
)
def test_doing_what_is_requested_ends_with_the_truth(mode, history, truth, verdict):
    speedup, loss, sd = truth
    doc = document(blocks=0, policy={"quality_runs": mode})
    doc["quality"]["history"] = sample(history, 2.5, sd)
    noise = {"baseline": sample(60, 2.5, sd), "compile": sample(59, 2.5 + loss, sd)}
    speeds = {"baseline": 1.0, "compile": speedup}
    steps = 0
    while (decision := judge(doc)).verdict is Verdict.CONTINUE:
        answer(doc, dict(step_of(decision) or {}), speeds, lambda name, index: noise[name][index])
        steps += 1
        assert steps < 4 * SCHEDULE[-1]

    assert verdict == decision.verdict
