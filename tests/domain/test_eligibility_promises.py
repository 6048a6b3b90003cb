"""What check promises: no more than holds, once for each job, in the words of its figures."""

from __future__ import annotations

import pytest

from compilegate.domain.workload.model import Candidate, Framework, Profile, Schedule
from tests.domain.workload_builder import SOUND, change, check


def test_what_no_reason_bounds_is_no_headline() -> None:
    idle = check(change(SOUND, profile=Profile(gpu_utilization=0.3))).economics
    waits = check(change(SOUND, profile=Profile(0.3, 0.3, 0.0))).economics

    assert idle.largest_speedup is None
    assert "no share of a step that waits" in idle.unknown["largest_speedup"]
    # What waits for data is a bound all the same: one over 0.3 + 0.7 / 1.5.
    assert pytest.approx(1.304, abs=1e-3) == waits.largest_speedup


@pytest.mark.parametrize("profile", [None, Profile(data_wait_fraction=0.01)])
def test_a_speedup_that_no_candidate_can_reach_is_told_and_never_pays_back(
    profile: Profile | None,
) -> None:
    found = check(change(SOUND, profile=profile, policy__promote_speedup=2.0))

    assert "policy.promote_speedup (2.00)" in found.candidates[0].reasons[0].message
    assert "policy.promote_speedup" == found.candidates[0].reasons[0].field
    assert found.economics.payback_days is None
    assert "policy.promote_speedup" in found.economics.unknown["payback_days"]


def test_a_break_even_holds_at_best() -> None:
    (reason,) = check(change(SOUND, schedule=Schedule(3000, 0.2))).candidates[0].reasons

    assert "runs longer than 15 min" in reason.message


def test_two_candidates_that_are_one_job_are_told_so_once() -> None:
    two = (
        Candidate(name="ddp", distribution="pytorchddp"),
        Candidate(name="smddp", distribution="smddp"),
    )
    workload = change(
        SOUND, framework=Framework("pytorch", "2.1.0"), candidates=two,
        training__instance_type="ml.p4d.24xlarge",
    )  # fmt: skip
    first, second = check(workload).candidates

    assert "same_job" not in {reason.code for reason in first.reasons}
    (reason,) = (reason for reason in second.reasons if reason.code == "same_job")
    assert "the same job as ddp" in reason.message
    assert "candidates[1]" == reason.field


def test_what_cannot_run_is_no_reason_to_drop_its_twin() -> None:
    two = (
        Candidate(name="smddp", distribution="smddp"),
        Candidate(name="ddp", distribution="pytorchddp"),
    )
    workload = change(SOUND, framework=Framework("pytorch", "2.1.0"), candidates=two)

    first, second = check(workload).candidates

    assert ["ineligible", "eligible"] == [first.verdict, second.verdict]


def test_prices_of_another_region_are_named() -> None:
    economics = check(SOUND, region="eu-west-1").economics.to_dict()

    assert ("us-west-2", "eu-west-1") == (economics["prices_region"], economics["region"])


@pytest.mark.parametrize(
    ("margin", "wide"), [(0.005, False), (0.4, False), (0.5, True), (5.0, True)]
)
def test_a_margin_of_half_the_metric_is_doubted(margin: float, wide: bool) -> None:
    codes = [reason.code for reason in check(change(SOUND, quality__margin=margin)).reasons]

    assert wide == ("margin_wide" in codes)
