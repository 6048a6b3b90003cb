"""A job that makes whole runs of both arms, from the plan that asks for it to what it leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.planning.plan import Plan
from compilegate.domain.spreads import Measured, Sample
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.planning import plan_for, plan_trial
from compilegate.usecases.trial.lock import acquire_lock
from tests.archives import tarball
from tests.domain.workload_builder import SOUND, change
from tests.usecases.canary_builder import register
from tests.usecases.production_ledger import decided, write
from tests.usecases.trial_builder import (
    EVENT,
    TRIAL,
    asks_full_runs,
    call_judge,
    evidence,
    load,
    outcome,
    put_output,
    put_spec,
    says,
)

ABBA = ("baseline 17", "compile 17", "compile 18", "baseline 18")
WALL = 600.0
SHORT = change(
    SOUND, schedule=replace(SOUND.schedule, run_hours=WALL / 3600, runs_per_week=100),
    training=replace(SOUND.training, max_runtime_hours=1, distribution="none"),
    profile=replace(SOUND.profile, compile_seconds_cold=5.0), policy=replace(
        SOUND.policy, quality_runs="shadow", min_mean_speedup=1.02, min_proven_speedup=1.0,
    ),
)  # fmt: skip
# Earlier trials saw nodes differ by 5 %, and blocks by 0.2 %: then pairs are cheapest.
SHOWN = Measured(
    SOUND.training.instance_type, whole_job=Sample(40 * 0.05**2, 40, 42),
    block=Sample(40 * 0.002**2, 40, 42),
)  # fmt: skip


def left(failed: int) -> dict[str, Any]:
    """The files of the four runs, of which one failed."""
    files: dict[str, Any] = {}
    for place, (arm, seed) in enumerate(map(str.split, ABBA)):
        finished = place != failed
        files[f"evidence/run-{place}/{arm}/summary.json"] = {
            "schema": 1, "finished": finished, "seed": int(seed), "wall_seconds": WALL + place,
            "metrics": {"eval_accuracy": 0.91} if finished else {}, "reason": None,
            "compiler": {"applied": True}, "process_seconds": WALL + 9,
        }  # fmt: skip
        steps = b'{"step": 1, "seconds": 0.5, "samples": 8}\n'
        files[f"evidence/run-{place}/{arm}/steps.jsonl"] = steps
    return files


def test_a_run_that_failed_takes_no_other_of_its_job_with_it(services: Any) -> None:
    write(services, "bert-docs", decided("before", services.clock.now(), spreads=SHOWN))
    fold_workload("bert-docs", services)
    put_spec(services, SHORT)
    plan_trial(EVENT, services=services)
    call_judge(services, 2, [], asks_full_runs(*ABBA))
    job = outcome("q2B17")["job"]
    put_output(services, job, tarball(left(failed=2)))
    services.jobs.add(job, "Completed", 1000.0, 4600.0)
    request = json.loads(services.store.get(naming.request_key("bert-docs", TRIAL, "q2B17")))
    services.jobs.descriptions[job] |= {
        "HyperParameters": request["HyperParameters"], "TrainingTimeInSeconds": 3600,
    }  # fmt: skip
    call_judge(services, 3, [outcome("q2B17")], says("continue"))

    runs = [
        (run["order"], f"{arm['name']} {run['seed']}", run["finished"])
        for arm in evidence(services)["arms"] for run in arm["runs"]
    ]  # fmt: skip
    assert [(n, one, n != 2) for n, one in enumerate(ABBA)] == sorted(runs)


@pytest.mark.parametrize(("mode", "paired"), [("shadow", True), ("canary", False)])
def test_only_a_trial_that_makes_its_full_runs_itself_makes_them_in_pairs(
    mode: str, paired: bool, services: Any
) -> None:
    write(services, "bert-docs", decided("before", services.clock.now(), spreads=SHOWN))
    fold_workload("bert-docs", services)
    put_spec(services, change(SHORT, policy__quality_runs=mode, schedule__cron="rate(1 day)"))
    register(services)
    acquire_lock(EVENT, services=services)
    cost = plan_trial(EVENT, services=services)["estimated_usd"]
    shadow = plan_for(SHORT, services.settings)
    plan = load(services, "plan")

    assert (mode, paired) == (plan["quality_mode"]["used"], plan.get("pairs") is not None)
    # Production makes its whole runs anyway.
    assert isinstance(shadow, Plan)
    assert (cost < shadow.estimate.speed_usd + shadow.estimate.quality_usd / 2) is not paired
