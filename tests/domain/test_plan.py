"""The plan as a whole: refused for cost, quota or power, and what it records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.eligibility import check_eligibility
from compilegate.domain.planning.arm_plan import ArmPlan
from compilegate.domain.planning.arms import Refusal
from compilegate.domain.planning.plan import Plan, plan_trial
from compilegate.domain.reasons import with_fix
from compilegate.domain.workload.model import Candidate, Workload
from compilegate.facts import load_facts
from tests.domain.workload_builder import COMPILE, MANAGED, SOUND, change

KIND = SOUND.training.instance_type
ROOMY = change(SOUND, policy__max_trial_usd=1e6)


def planned(workload: Workload, quotas: dict[str, int] | None = None) -> Plan | Refusal:
    facts = load_facts()
    eligibility = check_eligibility(workload, facts, region="us-east-1")
    return plan_trial(
        workload, eligibility.choice, facts, region="us-east-1", quota=(quotas or {}).get
    )


def plan_of(workload: Workload, quotas: dict[str, int] | None = None) -> Plan:
    found = planned(workload, quotas)
    assert isinstance(found, Plan), found
    return found


def refusal_of(workload: Workload, quotas: dict[str, int] | None = None) -> tuple[str, str]:
    found = planned(workload, quotas)
    assert isinstance(found, Refusal)
    return found.reason.code, with_fix(found.reason.message, found.reason.fix)


def test_a_job_that_no_quota_holds_is_refused_with_how_to_ask_for_more() -> None:
    code, message = refusal_of(change(ROOMY, training__instance_count=4), {KIND: 3})

    assert "quota_too_low" == code
    assert f"4 x {KIND}" in message
    assert "quota is 3" in message
    assert f'"{KIND} for training job usage" under Service Quotas' in message


def test_spot_jobs_have_a_quota_of_their_own() -> None:
    spot = change(ROOMY, training__spot=True, training__max_wait_hours=20.0)

    assert f'"{KIND} for spot training job usage"' in refusal_of(spot, {KIND: 0})[1]


def test_a_round_that_exceeds_the_quota_is_noted_and_not_refused() -> None:
    (need,) = plan_of(ROOMY, {KIND: 1}).quotas

    assert (1, 1, True) == (need.one_job, need.quota, need.exceeded)
    assert need.at_once > 1


def test_a_quota_that_holds_everything_is_no_obstacle() -> None:
    (need,) = plan_of(ROOMY, {KIND: 64}).quotas

    assert not need.exceeded


def test_an_unknown_quota_stays_unknown() -> None:
    assert [None] == [need.quota for need in plan_of(ROOMY).quotas]


def test_groups_of_arms_run_side_by_side_count_together() -> None:
    """Two blocks of two groups are four jobs, on the same type of instance."""
    pair = Candidate(name="script", entry_point="other.py")
    (need,) = plan_of(change(ROOMY, candidates=(COMPILE, pair)), {KIND: 64}).quotas

    assert 4 <= need.at_once


@given(st.integers(1, 8), st.integers(0, 40))
def test_one_job_never_takes_more_than_a_round(count: int, history: int) -> None:
    metrics = tuple(0.91 + 0.001 * (n % 3) for n in range(history))
    found = plan_of(
        change(ROOMY, training__instance_count=count, quality__history=metrics,
               quality__margin=0.01)
    )  # fmt: skip

    assert all(need.one_job == count <= need.at_once for need in found.quotas)


def test_above_the_cap_there_is_no_trial() -> None:
    code, message = refusal_of(change(SOUND, policy__max_trial_usd=1.0))

    assert "trial_over_budget" == code
    assert "$1.00" in message
    assert "Fix: raise the cap" in message


def test_what_could_not_be_proven_is_refused_with_what_could() -> None:
    code, message = refusal_of(change(ROOMY, quality__history=(0.90, 0.91, 0.92, 0.93, 0.94)))

    assert "underpowered" == code
    assert "could prove a margin of" in message


def test_a_named_candidate_that_cannot_run_is_left_out_with_the_reason() -> None:
    found = plan_of(change(ROOMY, candidates=(MANAGED, COMPILE)))

    assert ["baseline", "compile"] == [arm.name for arm in found.arms]
    assert "managed" == found.left_out[0][0]
    assert "2.13.0" in found.left_out[0][1]


@pytest.mark.parametrize(
    "candidate",
    [
        {"instance_type": "ml.p4d.24xlarge"},
        {"instance_count": 2},
        {"distribution": "none"},
        {"entry_point": "other.py"},
        {"compiler": "torch_compile", "compile_mode": "reduce-overhead"},
    ],
)
def test_every_kind_of_candidate_gets_an_arm(candidate: dict[str, Any]) -> None:
    found = plan_of(change(ROOMY, candidates=(Candidate(name="arm", **candidate),)))

    assert ["baseline", "arm"] == [arm.name for arm in found.arms]


def test_the_record_is_plain_json_and_gives_the_arms_back() -> None:
    found = plan_of(ROOMY)
    record = json.loads(json.dumps(found.to_dict()))

    assert ["as it runs today", "one factor: compiler"] == [a["label"] for a in record["arms"]]
    assert [arm.name for arm in found.arms] == [
        ArmPlan.from_dict(arm).name for arm in record["arms"]
    ]
    assert all(arm["role"] and arm["why"] for arm in record["arms"])
    assert record["runs_basis"]
    assert KIND == record["prices"][0]["instance_type"]


def test_the_price_of_a_full_run_is_the_baselines() -> None:
    found = plan_of(ROOMY)

    assert pytest.approx(6 * found.arms[0].usd_per_hour) == found.usd_per_quality_run
