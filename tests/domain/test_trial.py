"""A trial asks for one step after another, one candidate at a time, and ends."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.decision import Verdict
from tests.domain.evidence_builder import (
    GOOD,
    arm,
    document,
    judge,
    quality_run,
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


def test_whole_jobs_conclusively_too_slow_end_the_trial_before_its_quality_is_known():
    doc = document(metrics={"baseline": GOOD["baseline"][:2], "compile": GOOD["compile"][:1]})
    runs(doc)[0]["wall_seconds"] *= 3

    assert Verdict.INCONCLUSIVE == judge(doc).verdict
    assert "full_run_disagrees" == judge(doc).reasons[0].code
