"""What a trial's plan learns of spreads from the ledger and the rows, and what a trial leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.trial.evidence import TrialEvidence, TrialRecords
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.planning import plan_trial
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
