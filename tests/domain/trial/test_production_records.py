"""Which production runs are evidence of a trial, in which order, and what they cost it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.production.history import WorkloadHistory
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.production import BegunRun, CanarySlot, ProductionRun
from compilegate.domain.trial.evidence import (
    JobRecord,
    ProductionFacts,
    TrialEvidence,
    TrialRecords,
    production_records,
)
from compilegate.domain.trial.plan import QualityMode
from compilegate.domain.workload.model import Workload
from tests.domain.production.run_builder import production_run
from tests.domain.trial.plans import plan
from tests.domain.trial.test_evidence import full, speed
from tests.domain.workload_builder import SOUND

TRIAL, OTHER = "t1", "t0"
BEGAN, NOW = 1_000, 9_000
GPU = {"gpu": "A10G"}
MEASURED = JobRecord("s0", runs=(speed("s0", "baseline", 0, fingerprint=GPU),))
BESIDE = QualityMode("hybrid", "hybrid", beside=True)


def run(number: int, arm: str = "baseline", **changes: Any) -> ProductionRun:
    own = {"started_at": BEGAN + number, "fingerprint": GPU, **changes}
    return production_run(number, arm, **own)


def canary(number: int, arm: str = "compile", trial: str = TRIAL, **changes: Any) -> ProductionRun:
    return run(number, arm, canary=CanarySlot(trial, 0, number), **changes)


def recorded(
    *runs: ProductionRun,
    mode: QualityMode = BESIDE,
    records: tuple[JobRecord, ...] = (MEASURED,),
    code: str = "code",
    trained: Workload = SOUND,
) -> list[JobRecord]:
    """The records of runs that all trained the workload's job with source "code"."""
    begun = tuple(
        BegunRun(0, one.run, "e", one.arm, "scheduled", 1, 1, "spec", "source") for one in runs
    )
    history = WorkloadHistory(begun=begun, runs=runs)
    production = ProductionFacts(history, {"spec": TrainedJob(trained, "code").digest})
    recorded_plan = plan("baseline", "compile", quality_mode=mode, started_at=BEGAN)
    evidence = TrialEvidence(SOUND, recorded_plan, TrialRecords(records))
    return list(production_records(production, evidence, trial=TRIAL, code=code, now=NOW))


def jobs(records: list[JobRecord]) -> list[int]:
    """The numbers of the runs that were recorded."""
    return [int(record.job.split("-r")[1].split("-")[0]) for record in records]


@pytest.mark.parametrize(
    ("one", "is_evidence"),
    [
        (run(1), True),
        (run(1, started_at=BEGAN), True),
        (run(1, started_at=BEGAN - 1), False),
        (run(1, finished=False), False),
        (run(1, counts=False), False),
        (run(1, "compile"), False),
        (run(1, fingerprint={"gpu": "H100"}), False),
        (run(1, fingerprint=None), False),
        (canary(1, "baseline"), True),
        (canary(1, "baseline", OTHER), False),
        (canary(1), True),
        (canary(1, finished=False), True),
        (canary(1, counts=False), False),
        (canary(1, "left"), False),
    ],
)
def test_canary_runs_and_sound_baseline_runs_beside_it_are_evidence(one, is_evidence):
    # The run behind it is evidence whatever becomes of the one before.
    later = run(7)
    expected = [one.job, later.job] if is_evidence else [later.job]

    assert expected == [record.job for record in recorded(one, later)]


@pytest.mark.parametrize(
    ("changes", "is_evidence"),
    [
        ({}, True),
        ({"code": "other source"}, False),
        ({"mode": QualityMode("hybrid", "hybrid")}, False),
        ({"mode": QualityMode("shadow", "shadow", beside=True)}, True),
        ({"records": ()}, False),
        ({"records": (JobRecord("p0", runs=(full("p0", "baseline", 0, "production"),)),)}, False),
        ({"records": (JobRecord("q0", runs=(full("q0", "baseline", 0),)),)}, True),
        # The first fingerprint that was recorded counts.
        ({"records": (JobRecord("r0", runs=(speed("r0", "baseline", 0),)), MEASURED)}, True),
    ],
)
def test_a_baseline_run_is_evidence_beside_a_measured_baseline_of_the_same_job(
    changes, is_evidence
):
    assert is_evidence == bool(recorded(run(1), **changes))


def test_no_run_of_another_metric_is_evidence():
    """Nor one in the trial's own slot: earlier releases opened it for a run of any metric."""
    other = replace(SOUND, quality=replace(SOUND.quality, metric="f1"))

    assert [] == recorded(run(1), canary(2), canary(3, "baseline"), trained=other)


def test_a_trial_that_makes_all_its_runs_takes_none_of_production():
    assert [] == recorded(canary(1), mode=QualityMode("shadow", "shadow"))


def test_runs_are_kept_in_the_order_of_time_behind_those_of_the_trial():
    at_once = [run(number, started_at=BEGAN + 9) for number in (3, 2)]
    made = JobRecord("q0", runs=(full("q0", "compile", 0),))
    records = recorded(*at_once, canary(5), canary(4), run(6), records=(MEASURED, made))

    assert [4, 5, 6, 2, 3] == jobs(records)
    kept = [arm_run for record in records for arm_run in record.runs]
    assert [
        ("compile", 1, "canary"),
        ("compile", 2, "canary"),
        ("baseline", 3, "production"),
        ("baseline", 4, "production"),
        ("baseline", 5, "production"),
    ] == [(arm, one.record["order"], one.record["mode"]) for arm, one in kept]
    assert {NOW} == {record.at for record in records}


def test_a_run_that_was_recorded_is_not_written_again():
    first = recorded(canary(1), run(2))
    again = recorded(canary(1), run(2), canary(3), records=(MEASURED, *first))

    assert [False, False, True] == [record.has_runs for record in again]
    assert 2 == again[-1].runs[0][1].record["order"]


@pytest.mark.parametrize(
    ("one", "usd"),
    [
        (canary(1, finished=False, usd=3.0), 3.0),
        # 2 dollars an hour.
        (canary(1, finished=False, usd=None, billable_seconds=1_800.0), 1.0),
        (canary(1, finished=False, usd=None, billable_seconds=None, ended_at=BEGAN + 901), 0.5),
        (canary(1, finished=False, usd=None, billable_seconds=None, ended_at=BEGAN - 9), 0.0),
        (canary(1, usd=3.0), None),
        (canary(1, "baseline", finished=False, usd=3.0), None),
        (run(1, usd=3.0), None),
    ],
)
def test_only_a_candidates_failed_run_costs_the_trial(one, usd):
    (record,) = recorded(one)

    assert usd == (None if record.usd is None else pytest.approx(record.usd, abs=1e-9))
