"""Jobs that make whole runs of both arms: what is asked for, and what counts of what they leave."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.spreads import Measured, Sample
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.planning import plan_trial
from tests.archives import tarball
from tests.domain.workload_builder import SOUND, change
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
BAAB = ("compile 19", "baseline 19", "baseline 20", "compile 20")
WALL = 600.0
JOB = outcome("q2B17")["job"]


SHORT = change(
    SOUND, schedule=replace(SOUND.schedule, run_hours=WALL / 3600, runs_per_week=100),
    training=replace(SOUND.training, max_runtime_hours=1, distribution="none"),
    profile=replace(SOUND.profile, compile_seconds_cold=5.0), policy=replace(
        SOUND.policy, quality_runs="shadow", min_mean_speedup=1.02, min_proven_speedup=1.0,
    ),
)  # fmt: skip


def plan_short(services: Any, node: float = 0.05, workload: Any = SHORT) -> dict[str, Any]:
    """The plan of a trial where earlier ones saw nodes differ by so much, and blocks by 0.2 %."""
    shown = Measured(
        SOUND.training.instance_type, whole_job=Sample(40 * node**2, 40, 42),
        block=Sample(40 * 0.002**2, 40, 42),
    )  # fmt: skip
    write(services, "bert-docs", decided("before", services.clock.now(), spreads=shown))
    fold_workload("bert-docs", services)
    put_spec(services, workload)
    plan_trial(EVENT, services=services)
    return load(services, "plan")


@pytest.fixture
def paired(services: Any) -> Any:
    """A trial that makes its runs in pairs and asks for two jobs."""
    plan_short(services)
    call_judge(services, 2, [], asks_full_runs(*ABBA, *BAAB))
    return services


def request(services: Any, run: str) -> dict[str, Any]:
    key = naming.request_key("bert-docs", TRIAL, run)
    found: dict[str, Any] = json.loads(services.store.get(key))
    return found


def left(*places: int, failed: int | None = None, **changed: Any) -> dict[str, Any]:
    """The files of the runs at these places of the first job; ``changed`` of each."""
    files: dict[str, Any] = {}
    for place in places:
        arm, seed = ABBA[place].split()
        finished = place != failed
        summary = {
            "schema": 1, "finished": finished, "seed": int(seed), "wall_seconds": WALL + place,
            "metrics": {"eval_accuracy": 0.91} if finished else {}, "reason": None,
            "compiler": {"applied": True}, "process_seconds": WALL + 9, **changed,
        }  # fmt: skip
        files[f"evidence/run-{place}/{arm}/summary.json"] = summary
        steps = b'{"step": 1, "seconds": 0.5, "samples": 8}\n'
        files[f"evidence/run-{place}/{arm}/steps.jsonl"] = steps
    return files


def record(
    services: Any, files: dict[str, Any], status: str = "Completed", hours: float = 1
) -> Any:
    """The runs of both arms after the first job ended so, as (order, arm, seed, finished)."""
    put_output(services, JOB, tarball(files))
    services.jobs.add(JOB, status, 1000.0, 1000.0 + hours * 3600)
    services.jobs.descriptions[JOB] |= {
        "HyperParameters": request(services, "q2B17")["HyperParameters"],
        "TrainingTimeInSeconds": int(hours * 3600),
    }
    reason = None if status == "Completed" else "AlgorithmError: killed"
    answer = call_judge(services, 3, [outcome("q2B17", status, reason=reason)], says("continue"))
    runs = sorted(
        (run["order"], arm["name"], run["seed"], run["finished"])
        for arm in evidence(services)["arms"] for run in arm["runs"]
    )  # fmt: skip
    return answer, runs


def test_a_run_that_failed_takes_no_other_with_it(paired: Any) -> None:
    _, runs = record(paired, left(0, 1, 2, 3, failed=2))
    assert [True, True, False, True] == [finished for *_, finished in runs]


@pytest.mark.parametrize("begun", [True, False])
def test_of_a_job_that_was_killed_the_run_under_way_failed(paired: Any, begun: bool) -> None:
    files = left(0, 1, *([2] if begun else []), failed=2)
    _, runs = record(paired, files, "Failed")

    assert [(True, "baseline"), (True, "compile"), (False, "compile")] == [
        (finished, arm) for _, arm, _, finished in runs
    ]


WRONG = {
    "a run is missing": (left(0, 1, 3), 1.0, "left no run 2 of compile"),
    "nothing is there": ({}, 1.0, "left no run 0 of baseline"),
    "another seed": (left(0, 1, 2, 3, seed=5), 1.0, "seed 17 and recorded 5"),
    "longer than the job": (left(0, 1, 2, 3), 0.5, "cannot be true"),
    "not its own": (
        {**left(0, 1, 2, 3), "evidence/run-4/compile/summary.json":
         next(iter(left(1).values()))}, 1.0, "not its own",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "hours", "why"), WRONG.values(), ids=WRONG)
def test_what_is_not_as_it_was_asked_for_is_invalid(
    paired: Any, files: dict[str, Any], hours: float, why: str
) -> None:
    answer, runs = record(paired, files, hours=hours)

    assert ("invalid", []) == (answer["verdict"], runs)
    assert why in load(paired, "decision")["reasons"][0]["message"]
