"""Evidence follows from the records of jobs alone, in whatever order and however often given."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence, read_run
from compilegate.domain.trial.evidence import (
    ArmRun,
    JobRecord,
    TrialEvidence,
    TrialRecords,
    UnreadableRun,
    read_records,
)
from compilegate.domain.trial.plan import RecordedPlan
from compilegate.usecases.records import to_json
from tests.domain.outcome_builder import SET, packed_bits
from tests.domain.trial.plans import plan
from tests.domain.workload_builder import SOUND, change

PLAN = plan("baseline", "compile", "native-control")
RIGHT = np.array([True, False, True])


def speed(job: str, arm: str, block: int, **fields: Any) -> ArmRun:
    run = {
        "stage": "speed",
        "block": block,
        "job": job,
        "step_seconds": [0.1],
        "full_run_steps": 900,
        **fields,
    }
    return arm, read_run(run)


def full(job: str, arm: str, order: int, mode: str = "shadow") -> ArmRun:
    run = {"stage": "quality", "mode": mode, "order": order, "job": job, "seed": 17}
    return arm, read_run({**run, "metric": 0.9, "finished": True})


RECORDS = (
    JobRecord("s0", usd=1.5, at=10),
    JobRecord("s0", runs=(speed("s0", "baseline", 0), speed("s0", "compile", 0))),
    JobRecord("s1", usd=2.0, at=20),
    JobRecord("s2", usd=9.0, at=30),
    JobRecord("s2", usd=3.0, at=40),
    JobRecord("s2", runs=(speed("s2", "baseline", 1, full_run_steps=2000),)),
    JobRecord("q3", runs=(full("q3", "compile", 1),)),
    JobRecord("p4", runs=(full("p4", "baseline", 0, mode="canary"),)),
    JobRecord("p5", usd=4.0, unreadable=(UnreadableRun("compile", {"stage": "quality"}, "why"),)),
)
LOST = (2, 1, 2)


def assembled(*records: JobRecord) -> TrialEvidence:
    return TrialEvidence(SOUND, PLAN, TrialRecords(records, LOST))


def read_again(document: dict[str, Any]) -> TrialEvidence:
    return TrialEvidence(SOUND, PLAN, read_records(document))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(RECORDS), max_size=5))
def test_neither_order_nor_repetition_changes_anything(
    seed: int, repeated: list[JobRecord]
) -> None:
    shuffled = [*RECORDS, *repeated]
    random.Random(seed).shuffle(shuffled)

    assert to_json(assembled(*RECORDS).to_document()) == to_json(assembled(*shuffled).to_document())


def test_the_fold_job_by_job_is_the_evidence_of_all_records() -> None:
    running = TrialEvidence(SOUND, PLAN, TrialRecords(lost_rounds=LOST))
    for record in RECORDS:
        running = running.with_records(record)

    assert assembled(*RECORDS).to_document() == running.to_document()


def test_records_read_from_a_document_write_the_same_document() -> None:
    document = json.loads(to_json(assembled(*RECORDS).to_document()))

    assert to_json(document) == to_json(read_again(document).to_document())


def test_keys_that_0_2_0_refuses_are_written_only_where_a_team_has_set_them() -> None:
    strict = change(SOUND, policy__equivalence="strict", policy__holdback=0.1)
    plain, kept = (
        TrialEvidence(one, PLAN, TrialRecords()).to_document()["policy"] for one in (SOUND, strict)
    )

    assert {"equivalence": "strict"} == {key: kept[key] for key in kept if key not in plain}
    assert "equivalence" not in SOUND.to_dict()["policy"]
    assert "strict" == strict.to_dict()["policy"]["equivalence"]


def test_what_a_newer_recorder_wrote_of_a_run_stays_in_the_document() -> None:
    newer = JobRecord("s0", runs=(speed("s0", "baseline", 0, compile_seconds=0, watts=[1, None]),))
    document = json.loads(to_json(assembled(newer).to_document()))
    again = read_again(document).to_document()

    assert [newer.runs[0][1].record] == document["arms"][0]["runs"] == again["arms"][0]["runs"]


@pytest.mark.parametrize(("examples", "counts"), [(SET, True), ("0" * 64, False)])
def test_the_judge_reads_what_is_in_the_document(examples: str, counts: bool) -> None:
    """Also that past runs on other evaluation examples do not count."""
    workload = change(SOUND, quality__history=(0.8, 0.9), quality__history_set=examples)
    name, run = full("q1", "compile", 0)
    scored = read_run({**run.record, "outcomes": packed_bits(RIGHT)})
    evidence = TrialEvidence(
        workload, PLAN, TrialRecords((*RECORDS[:-1], JobRecord("q1", runs=((name, scored),))))
    )
    judged = evidence.to_evidence()

    assert judged == read_evidence(json.loads(to_json(evidence.to_document())))
    assert (counts, 0 if counts else 2) == (bool(judged.quality.history), judged.history_left_out)


def test_of_an_arm_without_the_length_of_a_run_nothing_is_judged() -> None:
    unknown = JobRecord("s0", runs=(speed("s0", "compile", 0, full_run_steps=None),))

    with pytest.raises(InvalidEvidenceError) as refused:
        assembled(unknown).to_evidence()
    with pytest.raises(InvalidEvidenceError) as refused_again:
        read_evidence(assembled(unknown).to_document())

    assert "arms[1].full_run_steps" in str(refused.value)
    assert str(refused.value) == str(refused_again.value)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (lambda evidence: evidence.spent_usd, 10.5),
        (lambda evidence: evidence.usd_by_job, {"s0": 1.5, "s1": 2.0, "s2": 3.0, "p5": 4.0}),
        (lambda evidence: evidence.lost_rounds, (1, 2)),
        (lambda evidence: evidence.next_order, 3),
        (lambda evidence: evidence.next_block, 2),
        (lambda evidence: len(evidence.arm("compile").full_runs), 1),
        (lambda evidence: evidence.control_blocks, {"native-control": 0}),
        (lambda evidence: evidence.records.with_runs, {"s0", "s2", "q3", "p4", "p5"}),
        (lambda evidence: evidence.to_document()["arms"][0]["full_run_steps"], 2000),
        # One of the year's runs was made for the trial by production.
        (lambda evidence: evidence.to_document()["runs_remaining"],
         SOUND.schedule.runs_per_week * 52 - 1),
    ],
)  # fmt: skip
def test_its_figures_follow_from_the_records(figure: Any, expected: Any) -> None:
    assert expected == figure(assembled(*RECORDS))


BROKEN = {
    "no job": ({"job": None}, r"arms\[1\]\.runs\[0\]\.job: "),
    "no block": ({"block": -1}, r"arms\[1\]\.runs\[0\]\.block: is out of range"),
}


@pytest.mark.parametrize(("change", "named"), BROKEN.values(), ids=BROKEN)
def test_a_stored_run_that_cannot_be_read_is_kept_and_named(
    change: dict[str, Any], named: str
) -> None:
    document = json.loads(to_json(assembled(*RECORDS[:-1]).to_document()))
    document["arms"][1]["runs"][0] |= change
    evidence = read_again(document)

    with pytest.raises(InvalidEvidenceError, match=named):
        evidence.to_evidence()
    assert document["arms"][1]["runs"][0] in evidence.to_document()["arms"][1]["runs"]
    assert ((1, 2), 6.5) == (evidence.lost_rounds, evidence.spent_usd)


def test_of_two_records_of_a_jobs_runs_the_first_counts() -> None:
    first = JobRecord("s0", runs=(speed("s0", "baseline", 0),), at=1)
    later = JobRecord("s0", runs=(speed("s0", "baseline", 7),), at=2)

    for records in ((first, later), (later, first)):
        assert [0] == [run.block for run in assembled(*records).arm("baseline").speed]


def test_a_plan_without_a_mode_makes_every_full_run_itself() -> None:
    assert isinstance(PLAN, RecordedPlan)
    assert not PLAN.runs_in_production
    assert "shadow" == assembled().to_document()["policy"]["quality_runs"]
