"""A trial whose jobs make whole runs of both arms, as the planner chose by what it learned.

Trials of other tests on the same cloud may have taught it before.
"""

from __future__ import annotations

import json

import pytest

from compilegate.domain import naming
from tests.domain.evidence_builder import judge
from tests.e2e.conftest import COMPILE_CANDIDATE, stand_in

pytestmark = pytest.mark.e2e
# Three minutes, as the start of a job takes.
SHORT = {"schedule": {"runs_per_week": 1000, "run_hours": 0.05}}


def test_a_later_trial_of_short_runs_makes_them_in_pairs_and_is_replayed(app, request):
    name = f"{request.node.name[7:20].replace('_', '-')}-pairs"

    def run(**hyperparameters):
        return app.start(
            stand_in(
                name, hyperparameters={"pace": 0.5, "nodes": 0.1, **hyperparameters},
                policy={"quality_runs": "shadow"}, candidates=[COMPILE_CANDIDATE],
                profile={"compile_seconds_cold": 5}, **SHORT,
            )
        )  # fmt: skip

    first = run()
    assert first.decision()["speedup"]["full_runs"] > 1
    second = run(noise=0.004)
    decision, evidence = second.decision(), second.record("evidence")

    chosen = second.record("plan")["pairs"]
    assert chosen["usd"] < chosen["usd_apart"]
    runs = [naming.job_run(name, second.trial, second.job(job)) for job in second.jobs()]
    assert {True} == {run.pairs for run in runs if not run.is_speed}
    jobs = {}
    for arm in evidence["arms"]:
        for one in arm["runs"]:
            if one["stage"] == "quality":
                jobs.setdefault(one["job"], {})[one["order"]] = arm["name"], one["seed"]
    assert [
        [("baseline", 17), ("compile", 17), ("compile", 18), ("baseline", 18)],
        [("compile", 19), ("baseline", 19), ("baseline", 20), ("compile", 20)],
    ] == [[one for _, one in sorted(own.items())] for own in jobs.values()][:2]
    assert "promote" == decision["verdict"], decision["reasons"]
    assert "paired_runs" in {reason["code"] for reason in decision["reasons"]}
    again = judge(evidence).to_dict(decision["flag"]["name"])
    assert json.loads(json.dumps(again)) == {k: v for k, v in decision.items() if k != "trial"}
