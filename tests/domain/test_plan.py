"""The plan as a whole: what it is refused for and records, who makes the full runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.codec import read
from compilegate.domain.eligibility.check import check_eligibility
from compilegate.domain.faults import FaultClass, FaultTable
from compilegate.domain.judging.design import Design
from compilegate.domain.judging.equivalence import upper_bound
from compilegate.domain.judging.evidence_file import read_evidence
from compilegate.domain.judging.quality import first_runs
from compilegate.domain.notes import SCRIPT_COMPILES, Note
from compilegate.domain.planning import rounds
from compilegate.domain.planning.arms import UNCOMPILED_WHY, ArmPlan
from compilegate.domain.planning.estimate import plan_proof, possible_rho
from compilegate.domain.planning.plan import (
    Choice,
    Pairs,
    Plan,
    expected_usd,
    pairs_for,
    plan_trial,
)
from compilegate.domain.reasons import Reason
from compilegate.domain.spreads import MINUTES, Spread, Spreads
from compilegate.domain.workload.model import Candidate, Framework, Profile, Workload
from compilegate.facts import load_facts
from tests.domain.evidence_builder import document
from tests.domain.workload_builder import COMPILE, MANAGED, SOUND, change

KIND = SOUND.training.instance_type
ROOMY = change(SOUND, policy__max_trial_usd=1e6)
HISTORIES = st.integers(0, 8)


def planned(
    workload: Workload, quotas: dict[str, int] | None = None, mode: str = "shadow"
) -> Plan | Reason:
    choice = check_eligibility(workload, load_facts(), region="us-east-1").choice
    quota = (quotas or {}).get
    return plan_trial(workload, choice, load_facts(), region="us-east-1", quota=quota, mode=mode)


def plan_of(workload: Workload, quotas: dict[str, int] | None = None, mode: str = "shadow") -> Plan:
    plan = planned(workload, quotas, mode)
    assert isinstance(plan, Plan), plan
    return plan


@pytest.mark.parametrize(
    ("workload", "quotas", "code", "says"),
    [
        (change(ROOMY, training__instance_count=4), {KIND: 3}, "quota_too_low", [
            f"4 x {KIND}", "quota is 3", f'"{KIND} for training job usage" under Service Quotas']),
        (change(ROOMY, training__spot=True, training__max_wait_hours=20.0), {KIND: 0},
         "quota_too_low", [f'"{KIND} for spot training job usage"']),
        (change(SOUND, policy__max_trial_usd=1.0), {}, "trial_over_budget", ["$1.00"]),
        (change(ROOMY, quality__history=(0.90, 0.91, 0.92, 0.93, 0.94)), {}, "underpowered",
         ["a margin of 0.01", "quality.margin"]),
    ],
    ids=["quota", "spot quota", "budget", "power"],
)  # fmt: skip
def test_a_trial_that_could_not_end_well_is_refused(workload, quotas, code, says):
    refusal = planned(workload, quotas)

    assert isinstance(refusal, Reason)
    text = f"{refusal.message} {refusal.fix}"
    assert code == refusal.code
    assert [] == [part for part in says if part not in text]


def test_a_cap_that_pays_for_the_baselines_machines_does_not_pay_for_dearer_ones():
    capped = change(SOUND, policy__max_trial_usd=800.0)
    dear = Candidate(name="dear", instance_type="ml.p4d.24xlarge", instance_count=8)
    refusal = planned(change(capped, candidates=(dear,)))
    roomy = plan_of(change(ROOMY, candidates=(dear,)))

    assert isinstance(planned(capped), Plan)
    assert isinstance(refusal, Reason)
    assert "trial_over_budget" == refusal.code
    # A candidate gets full runs only once it is faster by its price as well.
    assert 6 * roomy.arms[0].usd_per_hour == roomy.usd_per_quality_run


def test_where_none_may_be_tried_the_first_one_says_why():
    none = Choice((), left_out=(("compile", "too old"), ("larger", "no memory")))
    refused = plan_trial(SOUND, none, load_facts(), region="us-east-1")

    assert Reason("ineligible", "no candidate is eligible; compile: too old") == refused


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ({"full_run_steps": 200}, 180),
        ({"full_run_samples": 32000}, 56),  # of the arm with 64 samples on each of 8 devices
        ({"full_run_steps": 12000}, 320),
        ({"full_run_samples": 1}, 1),
        ({"full_run_steps": 0}, 320),
        ({"full_run_steps": 1}, 1),
        ({"full_run_samples": 0}, 320),
        ({"full_run_steps": "all", "full_run_samples": "all"}, 320),
        ({}, 320),
    ],
)
def test_a_segment_ends_before_the_data_of_the_shortest_run_does(values, steps):
    plan = plan_of(change(
        ROOMY, training__hyperparameters=values, training__batch_size=32,
        candidates=(COMPILE, Candidate(name="larger", batch_size=64)),
    ))  # fmt: skip

    assert steps == plan.speed_steps
    lengths = [plan_of(change(ROOMY, schedule__run_hours=hours)).speed_steps for hours in (0.9, 1)]
    assert [160, 320] == lengths


@given(st.integers(1, 8), st.integers(0, 40))
def test_one_job_never_takes_more_than_a_round(count, history):
    metrics = tuple(0.91 + 0.001 * (n % 3) for n in range(history))
    plan = plan_of(
        change(ROOMY, training__instance_count=count, quality__history=metrics,
               quality__margin=0.01)
    )  # fmt: skip

    assert all(need.one_job == count <= need.at_once for need in plan.quotas)


def test_a_named_candidate_that_cannot_run_is_left_out_with_the_reason():
    plan = plan_of(change(ROOMY, candidates=(MANAGED, COMPILE)))

    assert ["baseline", "compile"] == [arm.name for arm in plan.arms]
    (name, why), *_ = plan.left_out
    assert ("managed", {"name": name, "why": why}) == (name, plan.to_dict()["left_out"][0])
    assert "2.13.0" in why


def test_the_record_is_plain_json_and_gives_the_arms_back():
    plan = plan_of(ROOMY)
    record = json.loads(json.dumps(plan.to_dict()))

    assert ["as it runs today", "one factor: compiler"] == [a["label"] for a in record["arms"]]
    assert [arm.name for arm in plan.arms] == [read(ArmPlan, arm).name for arm in record["arms"]]
    assert all(arm["role"] and arm["why"] for arm in record["arms"])
    assert plan_proof(ROOMY, candidates=1).basis == record["runs_basis"]
    assert KIND == record["prices"][0]["instance_type"]
    baseline = plan.arms[0].usd_per_hour
    assert (1, 320, 2, 6, 6 * baseline, 1e6) == tuple(record[key] for key in (
        "schema", "speed_steps", "blocks_per_round", "max_blocks", "usd_per_quality_run",
        "max_trial_usd",
    ))  # fmt: skip
    learned = replace(plan, spreads=Spreads(left_out=MINUTES), pairs=Pairs(4, 1.0, 8, 2.0))
    more = learned.to_dict()
    assert {"spreads", "pairs"} == more.keys() - record.keys()
    assert (MINUTES, 8) == (more["spreads"]["left_out"], more["pairs"]["runs_apart"])


def test_a_baseline_whose_script_compiles_runs_without_that():
    plan, notes = plan_of(ROOMY), (Note(SCRIPT_COMPILES, {}),)
    noted = plan.with_notes(notes)

    assert (plan, notes) == (plan.with_notes(()), noted.notes)
    assert [UNCOMPILED_WHY, plan.arms[1].why] == [arm.why for arm in noted.arms]
    labels = ["as it runs today, its own compiling off", "one factor: compiler"]
    assert labels == [noted.label(arm) for arm in noted.arms]


def test_a_candidate_on_top_of_one_that_is_on_is_tried_alone_with_the_whole_error():
    larger = Candidate(name="larger", batch_size=64)
    history = (0.910, 0.911, 0.912, 0.913, 0.914)
    workload = change(ROOMY, quality__history=history, quality__margin=0.0053)
    both = Choice((COMPILE, larger))
    stack, apart, one = (
        plan_trial(workload, choice, load_facts(), region="us-east-1")
        for choice in (replace(both, on="compile", why={"larger": "w"}), both, Choice((larger,)))
    )

    assert isinstance(stack, Plan) and isinstance(apart, Plan) and isinstance(one, Plan)
    assert ["baseline", "on", "candidate"] == [arm.role for arm in stack.arms]
    assert "w" == stack.arms[2].why
    assert one.quality_runs == stack.quality_runs < apart.quality_runs


def test_the_estimate_is_of_the_schedule_the_quota_and_the_mode():
    canary, rarer = (
        plan_of(change(ROOMY, schedule__runs_per_week=week), mode="canary") for week in (30, 10)
    )
    weeks = 2 * canary.quality_runs * (1 / 10 - 1 / 30)
    one_at_once = plan_of(ROOMY, {KIND: 1}).estimate

    assert canary.quality_runs == rarer.quality_runs
    assert pytest.approx(168 * weeks) == rarer.estimate.hours - canary.estimate.hours
    assert one_at_once.hours > one_at_once.hours_side_by_side


def test_a_trial_may_cost_as_much_as_its_cap():
    usd, odd = plan_of(ROOMY).estimate.usd, Candidate(name="odd", instance_type="ml.g9.xlarge")
    for candidates, expected in (((COMPILE,), usd), ((), None), ((odd,), None)):
        assert expected == expected_usd(ROOMY, candidates, load_facts(), region="us-east-1")
    caps = (usd, usd - 0.01)
    found = [planned(change(ROOMY, policy__max_trial_usd=cap)) for cap in caps]

    assert [True, False] == [isinstance(one, Plan) for one in found]


def test_only_extra_runs_cost_anything_and_each_mode_has_its_own_number_of_looks():
    plans = {mode: plan_of(ROOMY, mode=mode) for mode in ("shadow", "hybrid", "canary")}
    usd = {mode: plan.estimate.quality_usd for mode, plan in plans.items()}

    assert usd["shadow"] > usd["hybrid"] > usd["canary"] == pytest.approx(0)
    looks = [plan.max_quality_runs for plan in plans.values()]
    assert [12, 54, 54] == looks


def test_no_job_of_the_trials_own_runs_side_by_side_with_another():
    (shadow,), (canary,) = (plan_of(ROOMY, mode=mode).quotas for mode in ("shadow", "canary"))

    assert 1 == canary.at_once < shadow.at_once


@given(history=HISTORIES)
def test_the_first_runs_of_a_hybrid_trial_are_those_that_the_judge_asks_for(history):
    past = tuple(0.9 + 0.0001 * n for n in range(history))
    workload = change(ROOMY, quality__history=past)
    proof = plan_proof(workload, candidates=1, mode="hybrid")
    evidence = document(policy={"quality_runs": "hybrid"})
    evidence["quality"]["history"] = list(past)

    assert first_runs(read_evidence(evidence)) == proof.extra_runs(12)


VARIED = change(ROOMY, quality__history=(0.90, 0.91, 0.92, 0.93, 0.94), quality__margin=0.012)


@pytest.mark.parametrize(
    ("known", "candidate", "strict"),
    [
        ({}, COMPILE, False),
        ({"framework": "pytorch 2.1"}, COMPILE, True),
        ({"device": "cuda 9.0"}, COMPILE, True),
        ({"precision": "fp16"}, COMPILE, True),
        ({"revoked_at": "2026-12-01"}, COMPILE, True),
        ({}, Candidate(name="larger", compiler="torch_compile", batch_size=8), True),
    ],
)
def test_a_candidate_of_a_class_whose_faults_are_known_needs_fewer_runs(known, candidate, strict):
    training = VARIED.training
    keys: dict[str, Any] = {
        "framework": "pytorch 2.13", "device": "cuda 8.6", "precision": training.precision,
        "faults": 59, "missed": 0, "date": "2026-11-26",
    }  # fmt: skip
    job = FaultClass(**keys | known)
    workload = change(VARIED, framework=Framework("pytorch", "2.13.0"), candidates=(candidate,))
    facts = replace(load_facts(), faults=FaultTable("", {}, classes=(job,)))
    rho = possible_rho(workload, [candidate], facts)
    proof, without = (
        plan_proof(workload, candidates=1, mode="canary", rho=one) for one in (rho, 1.0)
    )

    assert proof is not None is not without
    assert (1.0 if strict else upper_bound(0, 59)) == rho
    assert (proof.runs == without.runs) is strict
    assert proof.runs <= without.runs
    one = Choice((candidate,))
    made = plan_trial(workload, one, facts, region="us-east-1", mode="canary")
    assert isinstance(made, Plan)
    assert proof.runs == made.quality_runs
    own = change(workload, policy__equivalence="strict")
    assert 1.0 == possible_rho(own, [candidate], facts)


@pytest.mark.parametrize(
    ("instance_type", "missed"),
    [("ml.g5.xlarge", 0), ("ml.p5.48xlarge", 1), ("ml.m5.xlarge", 2), ("ml.unheard.of", 59)],
)
def test_faults_that_were_tried_on_another_device_are_not_counted(instance_type, missed):
    workload = change(
        VARIED, framework=Framework("pytorch", "2.13.0"), training__instance_type=instance_type
    )
    classes = tuple(
        FaultClass("pytorch 2.13", device, workload.training.precision, 59, missed, "2026-11-26")
        for missed, device in enumerate(("cuda 8.6", "cuda 9.0", "cpu x86_64"))
    )
    facts = replace(load_facts(), faults=FaultTable("", {}, classes=classes))

    assert upper_bound(missed, 59) == possible_rho(workload, [COMPILE], facts)


@given(
    history=HISTORIES, runs=st.integers(0, 36), mode=st.sampled_from(["shadow", "hybrid", "canary"])
)
def test_every_run_is_made_by_the_trial_or_by_production(history, runs, mode):
    past = tuple(0.9 + 0.0001 * n for n in range(history))
    proof = plan_proof(change(ROOMY, quality__history=past), candidates=1, mode=mode)
    extra, by_production = proof.extra_runs(runs), proof.production_runs(runs)

    assert 0 <= extra <= runs
    assert (by_production >= runs - extra) if mode != "shadow" else by_production == 0
    assert (extra == 0) or mode != "canary"


@given(
    runs=st.integers(1, 2),
    per_week=st.floats(0.2, 100.0),
    hours=st.floats(0.25, 100.0),
    elapsed=st.integers(0, rounds.MACHINE_SECONDS),
)
def test_the_timeout_covers_the_schedule_and_never_outlasts_the_machine(
    runs, per_week, hours, elapsed
):
    needed = rounds.production_seconds(runs, per_week, hours)
    if not rounds.has_time(elapsed, needed, limit_seconds=rounds.MACHINE_SECONDS):
        return
    timeout = rounds.production_timeout_seconds(runs, per_week, hours, elapsed_seconds=elapsed)

    assert needed <= timeout
    assert elapsed + timeout + rounds.ENDING_SECONDS <= rounds.MACHINE_SECONDS


# Ten minutes on one machine, where nodes differ by far more than blocks on one of them.
SHORT = change(
    ROOMY, training__distribution="none", training__max_runtime_hours=1, schedule__run_hours=1 / 6,
    schedule__runs_per_week=100, policy__min_mean_speedup=1.02, policy__min_proven_speedup=1.0,
    profile=Profile(compile_seconds_cold=5.0),
)  # fmt: skip
HALF_AN_HOUR = {"schedule__run_hours": 0.5, "training__max_runtime_hours": 3}
TUNED = Candidate(name="tuned", compiler="torch_compile", compile_mode="max-autotune")
MOVED = Candidate(name="moved", entry_point="other.py")
# Spreads of whole jobs over nodes and of blocks on one node.
NODES, BLOCKS = 0.05, 0.002


def paired(
    *, nodes: float | None = NODES, blocks: float | None = BLOCKS, unseen: float | None = None,
    beside: bool = False, **changes: Any,
) -> Pairs | None:  # fmt: skip
    workload = change(SHORT, **changes)
    learned = (one and Spread(one, "workload", "lm", 40, 1) for one in (nodes, blocks, unseen))
    made = plan_of(workload)
    native = replace(made.arms[0], name="native", role="control", image="other:1")
    plan = replace(made, arms=(*made.arms, native), spreads=Spreads(*learned))
    return pairs_for(workload, plan, beside=beside)


@pytest.mark.parametrize(
    ("how", "runs", "apart", "baseline"),
    [
        # Apart no look would prove the gain: all twelve, and as many of the baseline.
        ({}, 4, 12, 12),
        ({"nodes": 0.01}, 4, 8, 8),
        ({"beside": True}, 4, 12, 5),  # production makes the baseline's but one of six
        ({"blocks": 0.01}, 8, 12, 12),
        ({"policy__min_mean_speedup": 1.0}, 6, 12, 12),  # after the least gain there is
        ({"candidates": (COMPILE, TUNED)}, 4, 12, 12),
        (HALF_AN_HOUR, 4, 12, 12),
    ],
    ids=["usual", "nodes alike", "beside production", "blocks apart", "any gain", "two", "longer"],
)
def test_pairs_cost_what_their_whole_runs_on_one_node_cost(how, runs, apart, baseline):
    hours = how.get("schedule__run_hours", 1 / 6)
    usd_per_hour = plan_of(SHORT).arms[0].usd_per_hour
    # Each run with one of the baseline; a job of two of each has one start.
    usd = usd_per_hour * runs * (2 * hours + 0.05 / 2)
    usd_apart = usd_per_hour * (apart + baseline) * (hours + 0.05)

    assert Pairs(runs, round(usd, 4), apart, round(usd_apart, 4)) == paired(**how)


@pytest.mark.parametrize("candidates", [(COMPILE,), (COMPILE, TUNED)])
def test_pairs_are_so_many_that_a_look_proves_the_gain(candidates):
    """By blocks' own spread, and what they and nodes unseen say of it; at the look at five runs."""
    sd, unseen = 0.01, 0.012
    variance = 1 / (5 / sd**2 + 2 / (sd**2 / 3 + unseen**2))
    design = Design(history=4, n_max=12, error=0.05 / len(candidates))
    gain = design.provable_margin(5) * math.sqrt(5 * variance)
    found = [
        paired(
            blocks=sd,
            unseen=unseen,
            policy__min_proven_speedup=1.01,
            policy__min_mean_speedup=1.01 * math.exp(gain * share),
            candidates=candidates,
        )
        for share in (1.0001, 0.9999)
    ]

    assert [6, 8] == [one and one.runs for one in found]


@pytest.mark.parametrize(
    "how",
    [
        {"training__distribution": "torch_distributed"}, {"training__instance_count": 2},
        {"training__spot": True, "training__max_wait_hours": 20.0},
        {"candidates": (COMPILE, MOVED)},
        # A job of four runs may take as long again as they should.
        {**HALF_AN_HOUR, "training__max_runtime_hours": 2.9},
        {"schedule__run_hours": 0.51, "training__max_runtime_hours": 4},
        {"nodes": None}, {"blocks": None}, {"blocks": 0.02}, {"nodes": 0.002},
    ],
    ids=["launcher", "instances", "spot", "script", "time", "long", "nodes", "blocks", "noise",
         "cheaper apart"],
)  # fmt: skip
def test_where_a_node_cannot_hold_pairs_or_they_prove_no_sooner_runs_are_apart(how):
    assert paired(**how) is None


def test_what_blocks_miss_of_whole_jobs_is_taken_for_no_less_than_it_can_be():
    least, tiny, large = (paired(blocks=0.01, unseen=one) for one in (0.01, 0.001, 0.05))

    assert least is not None is not large
    assert least == tiny
    assert least.runs < large.runs
