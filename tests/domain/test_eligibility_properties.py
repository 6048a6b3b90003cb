"""What holds of the answer to any workload."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.eligibility.candidate_job import CandidateJob
from compilegate.domain.eligibility.payoff import most_trial_usd
from compilegate.domain.planning.plan import Plan, plan_trial
from compilegate.domain.reasons import Reason
from compilegate.domain.workload.model import Profile, Workload
from compilegate.facts import load_facts
from tests.domain.workload_builder import COMPILE, SOUND, change, check
from tests.domain.workload_strategies import mostly_sound, quick, workloads


@given(workload=workloads, region=st.sampled_from(["us-east-1", "cn-north-1", "mars-1"]))
@quick
def test_any_workload_gets_an_answer_that_agrees_with_its_reasons(
    workload: Workload, region: str
) -> None:
    found = check(workload, region=region)

    json.dumps(found.to_dict(), allow_nan=False)
    for one in found.candidates:
        blocked = any(reason.severity == "block" for reason in one.reasons)
        assert blocked == (one.verdict == "ineligible")
    assert bool(found.open_candidates) == (found.verdict != "ineligible")


@given(workload=workloads, factor=st.floats(0.1, 10))
@quick
def test_dollars_scale_with_prices(workload: Workload, factor: float) -> None:
    types = {workload.training.instance_type, *load_facts().instances}
    one, other = (
        check(workload, prices=dict.fromkeys(types, usd)).economics for usd in (2.0, 2.0 * factor)
    )

    assert one.annual_training_usd is not None
    assert pytest.approx(one.annual_training_usd * factor) == other.annual_training_usd
    assert (one.trial_usd is None) == (other.trial_usd is None)
    if one.trial_usd is not None:
        assert pytest.approx(one.trial_usd * factor) == other.trial_usd
    assert one.payback_days is None or pytest.approx(one.payback_days) == other.payback_days


@given(workload=workloads)
@quick
def test_the_plausible_saving_never_exceeds_the_spend(workload: Workload) -> None:
    economics = check(workload).economics
    saving = economics.plausible_annual_saving_usd

    if saving is not None:
        assert economics.annual_training_usd is not None
        assert 0 <= saving.low <= saving.high < economics.annual_training_usd


@given(workload=workloads, longer=st.floats(1.0, 100.0))
@quick
def test_a_longer_run_is_never_too_short_where_a_shorter_one_is_not(
    workload: Workload, longer: float
) -> None:
    hours = workload.schedule.run_hours * longer
    short, long = check(workload), check(change(workload, schedule__run_hours=hours))

    for one, other in zip(short.candidates, long.candidates, strict=False):
        if one.candidate == other.candidate and not _too_short(one.reasons):
            assert not _too_short(other.reasons)


@given(workload=workloads)
@quick
def test_what_a_run_must_exceed_lies_between_warm_and_cold(workload: Workload) -> None:
    found = check(workload).economics
    broken = found.break_even

    if broken is not None:
        assert broken.warm_seconds <= broken.sure_seconds <= broken.cold_seconds
    if found.largest_speedup is not None:
        assert 1 <= found.largest_speedup <= 1.5


@given(workload=mostly_sound)
@quick
def test_check_and_plan_never_contradict_each_other(workload: Workload) -> None:
    found = check(workload)
    plan = plan_trial(workload, found.choice, load_facts(), region="us-east-1")
    said = {r.code for r in found.reasons}
    said |= {r.code for one in found.candidates for r in one.reasons}

    if isinstance(plan, Plan):
        assert pytest.approx(plan.estimate.usd) == found.economics.trial_usd
        assert not said & {"trial_over_budget", "underpowered"}
    elif plan.reason.code == "ineligible":
        assert "ineligible" == found.verdict
    else:
        assert "ineligible" != found.verdict
        assert plan.reason.code in said


@given(workload=mostly_sound)
@quick
def test_no_trial_is_expected_to_cost_more_than_the_quick_bound(workload: Workload) -> None:
    for index, candidate in enumerate(workload.candidates):
        context = CandidateJob(workload, candidate, index, load_facts(), "us-east-1")

        assert (context.trial_usd or 0.0) <= most_trial_usd(context)


def test_a_first_compilation_of_days_is_within_the_bound_too() -> None:
    slow = change(SOUND, profile=Profile(compile_seconds=1, compile_seconds_cold=1e6))
    context = CandidateJob(slow, COMPILE, 0, load_facts(), "us-east-1")

    assert 1e6 / 3600 * 20.36 < (context.trial_usd or 0.0) <= most_trial_usd(context)


def _too_short(reasons: Sequence[Reason]) -> bool:
    return any(r.code == "run_too_short" and r.severity == "block" for r in reasons)
