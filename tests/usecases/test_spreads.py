"""What a trial's plan learns of spreads from the ledger and the rows, and what a trial leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from compilegate.domain import naming
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.records.production import ProductionRun
from compilegate.domain.spreads import INSTANCE, WORKLOAD, Measured, Sample
from compilegate.domain.trial.evidence import TrialEvidence, TrialRecords
from compilegate.domain.workload.model import BASELINE
from compilegate.usecases.fleet.project import fold_workload
from compilegate.usecases.planning import plan_trial
from compilegate.usecases.records import Trial, load_plan, load_spec, save_decision, save_record
from compilegate.usecases.trial.apply_flag import record_decision
from tests.domain.evidence_builder import GOOD, document, judge
from tests.domain.workload_builder import SOUND
from tests.usecases.production_ledger import decided, write
from tests.usecases.trial_builder import EVENT, SPEC, TRIAL, load

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


def test_a_plan_learns_from_the_workloads_runs_on_the_type_at_equal_steps(services: Any) -> None:
    produced(services, [3600.5, 3610.5] * 4)
    produced(services, [1800.5, 900.5] * 4, instance_type="ml.g4dn.xlarge", name="other")
    produced(services, [2000.5, 200.5] * 4, name="mine", arm="compile")
    produced(services, [10.5, 900.5] * 4, counts=False, name="fallback")
    long = {"finished": True, "wall_seconds": 2 * 3600.5, "work": {**WORK, "steps": 200}}
    produced(services, [2 * 3600.5], result=long, name="longer")
    found = spreads(services).whole_job

    assert (WORKLOAD, NAME, 9) == (found.source, found.name, found.runs)
    sd = math.log(3610.5 / 3600.5) / 0.9539
    assert math.isclose(
        found.sd, math.exp((4 * math.log(sd) + 3 * math.log(0.08)) / 7), rel_tol=0.01
    )


def test_what_was_learned_is_in_plan_and_evidence_as_the_judge_reads_it(services: Any) -> None:
    produced(services, [3600.5, 3610.5] * 4)
    learned = spreads(services)
    workload, plan = load_spec(services.store, ON).workload, load_plan(services.store, ON)
    kept = TrialEvidence(workload, plan, TrialRecords()).to_document()
    produced(services, [2000.5, 3610.5] * 9, name="later")

    assert learned == read_evidence(kept).plan.spreads
    assert learned == load_plan(services.store, ON).spreads


def test_a_plan_without_anything_to_learn_from_says_nothing_of_spreads(services: Any) -> None:
    plan_trial(EVENT, services=services)

    assert "spreads" not in load(services, "plan")


def test_other_workloads_of_the_deployment_tell_what_the_workload_does_not(services: Any) -> None:
    for name in ("a", "b"):
        shown = Measured(MACHINE, whole_job=Sample(8 * 0.002**2, 8, 10))
        wild = Measured(MACHINE, whole_job=Sample(8.0, 8, 10))
        for trial, spread in (("t0", wild), ("t1", shown), ("t2", shown)):
            at = services.clock.now() - 9 + int(trial[1])
            write(services, name, decided(trial, at, spreads=spread))
        write(services, name, decided("t3", services.clock.now(), spreads=shown))
        fold_workload(name, services)
    found = spreads(services).whole_job

    assert (INSTANCE, 60, 2) == (found.source, found.runs, found.workloads)
    assert found.sd < 0.003


def test_a_decided_trial_leaves_what_later_ones_learn_from(services: Any) -> None:
    plan_trial(EVENT, services=services)
    evidence = {**document(metrics=GOOD), "workload": NAME}
    save_record(services.store, ON, "evidence", evidence)
    key = save_decision(services.store, ON, judge(evidence), stage=services.settings.stage)
    record_decision({**EVENT, "decision_key": key}, services=services)
    fold_workload(NAME, services)
    (shown,) = services.fleet.row(NAME).item.spreads

    assert (MACHINE, 6, 3) == (shown.instance_type, shown.whole_job.runs, shown.block.runs)


def test_a_decision_on_evidence_that_cannot_be_read_is_recorded_without(services: Any) -> None:
    plan_trial(EVENT, services=services)
    evidence = {**document(metrics=GOOD), "workload": NAME}
    key = save_decision(services.store, ON, judge(evidence), stage=services.settings.stage)
    save_record(services.store, ON, "evidence", {**evidence, "arms": []})
    record_decision({**EVENT, "decision_key": key}, services=services)
    (entry,) = services.ledger.history(NAME).decided

    assert (None, "promote") == (entry.spreads, entry.verdict)
