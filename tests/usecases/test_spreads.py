"""What a trial's plan learns of spreads from the ledger and the rows, and what a trial leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.ledger_keys import CLOCKS_APART_SECONDS
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.trial.evidence import TrialEvidence, TrialRecords
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.planning import baseline_walls, learned_spreads, plan_trial
from compilegate.usecases.records import Trial, load_plan, load_spec, save_decision, save_record
from compilegate.usecases.trial.apply_flag import record_decision
from tests.domain.evidence_builder import GOOD, document, judge
from tests.domain.workload_builder import SOUND
from tests.usecases.production_ledger import write
from tests.usecases.trial_builder import EVENT, SPEC, TRIAL

NAME, MACHINE = "bert-docs", SOUND.training.instance_type
ON = Trial(NAME, TRIAL, SPEC)
WORK = {"steps": 100, "samples_per_step": 8.0, "tokens_per_step": 0.0}


def produced(services: Any, walls: list[float], name: str = "", **more: Any) -> None:
    """Production's runs of so many seconds, each an hour after the one before, until now."""
    for place, wall in enumerate(walls):
        began = services.clock.now() - 3600.0 * (len(walls) - place)
        run = ProductionRun(
            run=naming.trial_id(int(1000 * began)), job=f"j{place}{name}",
            arm=BASELINE, started_at=began, ended_at=began + wall, why="flag", counts=True,
            result={"finished": True, "wall_seconds": wall, "work": WORK}, instance_type=MACHINE,
        )  # fmt: skip
        write(services, NAME, replace(run, **more))


def result(wall: float | None, steps: float | None, **more: Any) -> dict[str, Any]:
    size = {"samples_per_step": more.pop("samples", 8.0)}
    work = {} if steps is None else {"work": {**WORK, **size, "steps": steps}}
    return {"result": {"finished": True, "wall_seconds": wall, **work, **more}}


@pytest.mark.parametrize(
    ("second", "walls"),
    [
        (result(300.0, 200), [200.0, 300.0, 200.0]),
        (result(300.0, 400, samples=4.0), [200.0, 150.0, 200.0]),
        (result(300.0, None), [100.0, 300.0, 100.0]),
        (result(300.0, 200) | {"arm": "compile"}, [100.0, 100.0]),
        (result(300.0, 200) | {"counts": False}, [100.0, 100.0]),
        (result(300.0, 200) | {"instance_type": "ml.g5.xlarge"}, [100.0, 100.0]),
        (result(300.0, 200, finished=False), [100.0, 100.0]),
        (result(None, 200), [100.0, 100.0]),
    ],
)
def test_walls_of_baseline_runs_are_compared_at_the_steps_of_the_last(
    second: dict[str, Any], walls: list[float], services: Any
) -> None:
    steps = 100 if walls[-1] == 100.0 else 200
    wall = walls[-1] if steps == 200 else 100.0
    produced(services, [100.0])
    services.clock.seconds += 3600
    produced(services, [300.0], "second", **second)
    services.clock.seconds += 3600
    produced(services, [wall], "third", **result(wall, steps))

    assert walls == baseline_walls(services.ledger.history(NAME), MACHINE)


@pytest.mark.parametrize(("seconds", "runs"), [(-1, 4), (1, 3)])
def test_runs_of_half_a_year_are_learned_from(seconds: int, runs: int, services: Any) -> None:
    produced(services, [3600.5])
    services.clock.seconds += 180 * 86400 + CLOCKS_APART_SECONDS - 3600 + seconds
    produced(services, [3610.5, 3602.5, 3611.5])
    spread = learned_spreads(NAME, MACHINE, services=services).whole_job

    assert spread is not None
    assert runs == spread.runs


def spreads(services: Any) -> Any:
    plan_trial(EVENT, services=services)
    return load_plan(services.store, ON).spreads


def test_what_was_learned_is_in_plan_and_evidence_as_the_judge_reads_it(services: Any) -> None:
    produced(services, [3600.5, 3610.5] * 4)
    learned = spreads(services)
    workload, plan = load_spec(services.store, ON).workload, load_plan(services.store, ON)
    kept = TrialEvidence(workload, plan, TrialRecords()).to_document()
    produced(services, [2000.5, 3610.5] * 9, name="later")

    assert learned == read_evidence(kept).plan.spreads
    assert learned == load_plan(services.store, ON).spreads


def test_a_decided_trial_leaves_what_later_ones_learn_from(services: Any) -> None:
    plan_trial(EVENT, services=services)
    evidence = {**document(metrics=GOOD), "workload": NAME}
    save_record(services.store, ON, "evidence", evidence)
    key = save_decision(services.store, ON, judge(evidence), stage=services.settings.stage)
    record_decision({**EVENT, "decision_key": key}, services=services)
    fold_workload(NAME, services)
    (shown,) = services.fleet.row(NAME).item.spreads

    assert (MACHINE, 6, 3) == (shown.instance_type, shown.whole_job.runs, shown.block.runs)
