"""Evidence follows from the records of jobs alone, in whatever order and however often given."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.errors import InvalidEvidenceError
from compilegate.domain.judging.evidence_file import read_evidence, read_run
from compilegate.domain.planning.arms import ON
from compilegate.domain.spreads import MINUTES, Spreads
from compilegate.domain.trial.evidence import (
    ArmRun,
    JobRecord,
    TrialEvidence,
    TrialRecords,
    UnreadableRun,
    read_records,
    saved_bundle,
)
from compilegate.domain.trial.plan import QualityMode
from compilegate.usecases.records import to_json
from tests.domain.trial.plans import arm, plan
from tests.domain.workload_builder import SOUND, change

PLAN = plan("baseline", "compile", "native-control")


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
def test_neither_order_nor_repetition_changes_anything(seed, repeated):
    shuffled = [*RECORDS, *repeated]
    random.Random(seed).shuffle(shuffled)

    assert to_json(assembled(*RECORDS).to_document()) == to_json(assembled(*shuffled).to_document())


def test_of_an_arm_without_the_length_of_a_run_nothing_is_judged():
    unknown = JobRecord("s0", runs=(speed("s0", "compile", 0, full_run_steps=None),))

    with pytest.raises(InvalidEvidenceError) as refused:
        assembled(unknown).to_evidence()
    with pytest.raises(InvalidEvidenceError) as refused_again:
        read_evidence(assembled(unknown).to_document())

    assert "arms[1].full_run_steps" in str(refused.value)
    assert str(refused.value) == str(refused_again.value)


def test_records_read_from_a_document_write_the_same_document():
    broken = JobRecord("p5", unreadable=(UnreadableRun("compile", {"job": "p5"}, "why"),))
    document = json.loads(to_json(assembled(*RECORDS[:-1], broken).to_document()))
    again = read_again(document)

    assert to_json(document) == to_json(again.to_document())
    assert {"p4", "p5", "q3", "s0", "s1", "s2"} == {record.job for record in again.records.jobs}


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (lambda evidence: evidence.spent_usd, 10.5),
        (lambda evidence: evidence.usd_by_job, {"s0": 1.5, "s1": 2.0, "s2": 3.0, "p5": 4.0}),
        (lambda evidence: evidence.lost_rounds, (1, 2)),
        (lambda evidence: evidence.next_order, 3),
        (lambda evidence: evidence.next_block, 2),
        (lambda evidence: [evidence.arm(name).name for name in ("compile", "baseline")],
         ["compile", "baseline"]),
        (lambda evidence: evidence.control_blocks, {"native-control": 0}),
        (lambda evidence: evidence.records.with_runs, {"s0", "s2", "q3", "p4", "p5"}),
        (lambda evidence: evidence.to_document()["arms"][0]["full_run_steps"], 2000),
        (lambda evidence: [arm["name"] for arm in evidence.to_document()["controls"]],
         ["native-control"]),
        # One of the year's runs was made for the trial by production.
        (lambda evidence: evidence.to_document()["runs_remaining"],
         SOUND.schedule.runs_per_week * 52 - 1),
    ],
)  # fmt: skip
def test_its_figures_follow_from_the_records(figure, expected):
    assert expected == figure(assembled(*RECORDS))


BROKEN = {
    "no job": ({"job": None}, r"arms\[1\]\.runs\[0\]\.job: "),
    "no block": ({"block": -1}, r"arms\[1\]\.runs\[0\]\.block: is out of range"),
}


@pytest.mark.parametrize(("change", "named"), BROKEN.values(), ids=BROKEN)
def test_a_stored_run_that_cannot_be_read_is_kept_and_named(change, named):
    document = json.loads(to_json(assembled(*RECORDS[:-1]).to_document()))
    document["arms"][1]["runs"][0] |= change
    evidence = read_again(document)

    with pytest.raises(InvalidEvidenceError, match=named):
        evidence.to_evidence()
    assert document["arms"][1]["runs"][0] in evidence.to_document()["arms"][1]["runs"]
    assert ((1, 2), 6.5) == (evidence.lost_rounds, evidence.spent_usd)


OPTIONAL = ("lost_rounds", "waited_rounds", "unmeasured_by_job")


def test_a_document_keeps_what_befell_its_jobs():
    control = JobRecord("s0", runs=(speed("s0", "native-control", 0),), unmeasured=("compile",))
    records = TrialRecords((control,), (2,), (3,), {"classes": []})
    document = json.loads(to_json(TrialEvidence(SOUND, PLAN, records).to_document()))
    again = read_again(document)

    assert [[2], [3], {"s0": ["compile"]}] == [document["plan"][key] for key in OPTIONAL]
    assert {"classes": []} == document["equivalence"]
    assert document == json.loads(to_json(again.to_document()))
    assert {"native-control": 1} == again.control_blocks
    assert (["s0"], []) == (again.jobs_without("compile"), again.jobs_without("baseline"))


def test_every_run_of_a_job_that_cannot_be_read_is_kept():
    record = JobRecord("q1").with_run("compile", "no run", "a").with_run("compile", {"job": 1}, "b")
    counted = record.with_run("compile", {"stage": "quality", "job": None}, "c")
    lost = assembled(
        JobRecord("s0", unreadable=(UnreadableRun("baseline", {"stage": "speed"}, ""),))
    )

    assert ["no run", {"job": 1}] == [run.record for run in record.unreadable]
    # A full run has taken its place in the order, readable or not.
    assert [0, 1, 0] == [
        assembled(record).next_order,
        assembled(counted).next_order,
        lost.next_order,
    ]
    assert 0 == assembled().next_block


@pytest.mark.parametrize("stored", ["no run", {"stage": "speed"}, {"stage": "speed", "job": None}])
def test_a_stored_run_that_names_no_job_is_of_none(stored):
    document = json.loads(to_json(assembled().to_document()))
    document["arms"][1]["runs"] = [stored]
    (record,) = read_again(document).jobs

    assert ("", [stored]) == (record.job, [run.record for run in record.unreadable])


def test_an_arm_has_the_last_known_length_of_a_run():
    records = (
        JobRecord("s0", runs=(speed("s0", "baseline", 0, full_run_steps=800),)),
        JobRecord("s1", runs=(speed("s1", "baseline", 1, full_run_steps=None),)),
    )

    assert 800 == assembled(*records).arm("baseline").full_run_steps


def test_of_two_records_of_a_jobs_runs_the_first_counts():
    price = JobRecord("s0", usd=2.0, at=0)
    first = JobRecord("s0", runs=(speed("s0", "baseline", 0),))
    later = JobRecord("s0", runs=(speed("s0", "baseline", 7),), at=1)

    for records in ((price, first, later), (later, first, price)):
        evidence = assembled(records[0]).with_records(records[1]).with_records(records[2])
        assert [0] == [run.block for run in evidence.arm("baseline").speed]


def test_full_runs_stand_in_their_order_whatever_their_jobs_are_called():
    records = [JobRecord(f"q{9 - n}", runs=(full(f"q{9 - n}", "compile", n),)) for n in range(3)]

    assert [0, 1, 2] == [run.order for run in assembled(*records).arm("compile").quality]


BUNDLE = {"state": "saved", "sha256": "a" * 64}
LATER = {"state": "saved", "sha256": "b" * 64}


@pytest.mark.parametrize(
    ("runs", "digest"),
    [
        ([], None),
        ([{"finished": True}, {"finished": True, "compile_bundle": None}], None),
        ([{"finished": True, "compile_bundle": BUNDLE}, {"finished": True}], "a"),
        ([{"finished": True, "compile_bundle": one} for one in (BUNDLE, LATER)], "b"),
        ([{"finished": False, "compile_bundle": BUNDLE}], None),
        ([{"finished": True, "compile_bundle": {**BUNDLE, "state": "failed"}}], None),
        ([{"finished": True, "compile_bundle": {**BUNDLE, "sha256": "../" + "a" * 61}}], None),
    ],
)
def test_production_starts_from_the_latest_bundle_that_the_arm_saved(runs, digest):
    others = [{"finished": True, "compile_bundle": {"state": "saved", "sha256": "c" * 64}}]
    arms = [{"name": "baseline", "runs": others}, {"name": "compile", "runs": runs}]
    bundle = saved_bundle({"arms": arms}, "compile", "bert")

    assert None is saved_bundle({}, "compile", "bert")
    assert (digest is None) is (bundle is None)
    if bundle and digest:
        assert digest * 64 == bundle.sha256
        assert bundle.place.startswith(naming.compile_cache_prefix("bert"))
        assert bundle.place.endswith(f"/{bundle.sha256}.json")


def test_production_may_have_made_more_runs_than_the_year_had_left():
    yearly = change(SOUND, schedule__runs_per_week=1)
    made = [JobRecord(f"p{n}", runs=(full(f"p{n}", "compile", n, "canary"),)) for n in range(60)]
    evidence = TrialEvidence(yearly, PLAN, TrialRecords(tuple(made)))

    assert 0 == evidence.to_document()["runs_remaining"]


def test_what_a_plan_lacks_is_no_key_and_what_it_has_is_one():
    learned = Spreads(left_out=MINUTES)
    arms = (*PLAN.arms, arm("on", role=ON))
    policy = change(SOUND, policy__holdback=0.5, policy__quality_runs="canary")
    own = replace(PLAN, arms=arms, spreads=learned, pairs=True)
    has = TrialEvidence(policy, own, TrialRecords()).to_document()
    lacks = assembled(JobRecord("s0", runs=(speed("s0", "compile", 0),))).to_document()

    assert ("on", True, asdict(learned)) == (
        has["on_top_of"], has["plan"]["pairs"], has["plan"]["spreads"],
    )  # fmt: skip
    assert (
        not {"on_top_of", "unmeasured_by_job", "pairs", "spreads"}
        & {**lacks, **lacks["plan"]}.keys()
    )
    # What its runs are made as is the plan's; the holdback comes after the probation.
    assert ("shadow", False) == (has["policy"]["quality_runs"], "holdback" in has["policy"])
    assert lacks["policy"] == {**has["policy"]}


def test_a_document_has_what_its_plan_says_and_no_key_without_a_value():
    figures = {
        "speed_steps": 161,
        "blocks_per_round": 3,
        "max_blocks": 7,
        "usd_per_block": 1.25,
        "usd_per_quality_run": 5.5,
    }
    mode = QualityMode("hybrid", "shadow", why="no schedule", beside=True)
    own = plan("baseline", "compile", quality_mode=mode, **figures)
    document = TrialEvidence(SOUND, own, TrialRecords()).to_document()
    expected = {
        **figures,
        "production_beside": True,
        "asked_quality_runs": "hybrid",
        "runs_as_shadow_because": "no schedule",
        "spent_usd": 0,
        "runs_at_start": SOUND.schedule.runs_per_week * 52,
    }

    assert expected == {key: document["plan"][key] for key in expected}
    assert not {*OPTIONAL} & document["plan"].keys()
    assert not {"controls", "equivalence"} & document.keys()
    assert None not in document["quality"].values()
