"""Which arm the next run trains, as a table of situations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.flag import OFF, STATES, Flag
from compilegate.domain.production.canary import OpenSlot
from compilegate.domain.production.next_arm import (
    PROBLEMS,
    REFRESH_EVERY,
    FlagReading,
    Situation,
    next_arm,
)
from compilegate.domain.records.reviews import Review
from compilegate.domain.records.runs import BegunRun, CanarySlot, ProductionRun

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z")
FOLLOWED = ("compile", "flag", {"compiler": "torch_compile"}, False, "d1")


def told(situation):
    found = next_arm(situation)
    return (found.arm, found.why, dict(found.overrides), found.confirm, found.decision_id)


def ran(number, arm="compile", **more):
    values = {
        "result": {"finished": True}, "counts": True, "why": "flag", "started_at": number * 100.0,
        "ended_at": number * 100.0 + 50,
    }  # fmt: skip
    return ProductionRun(f"r{number}", f"j{number}", arm, **{**values, **more})


def begun(number, arm="compile", confirm=False):
    return BegunRun(
        at=number * 100, run=f"r{number}", execution="e", arm=arm, why="flag", seed=1, number=1,
        spec_key="s", source_key="s", confirm=confirm,
    )  # fmt: skip


def asked(*arms, confirm=True, at=1000):
    runs = [{"arm": arm, "confirm": confirm} for arm in arms]
    return Review(at, "r0", "t1", "compile", next={"runs": runs})


def on(**more):
    return Situation(FlagReading(ON, "text"), **more)


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        (OFF, "scheduled"),
        (replace(ON, enabled=False, state="reverted"), "scheduled"),
        (replace(ON, enabled=False, state="stale"), "stale"),
        (replace(ON, candidate=None), "scheduled"),
    ],
)
def test_a_flag_that_is_not_clearly_on_is_the_baseline(flag, why):
    assert ("baseline", why, {}, False, None) == told(Situation(FlagReading(flag)))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_flag_that_cannot_be_followed_is_the_baseline_even_where_it_says_on(problem):
    reading = FlagReading(ON, "text", problem=problem, explanation="why")

    assert ("baseline", problem, {}, False, None) == told(Situation(reading))


@pytest.mark.parametrize("state", ["probation", "permanent", "stale"])
def test_a_flag_that_is_on_is_followed(state):
    reading = FlagReading(replace(ON, state=state), "text")

    assert FOLLOWED == told(Situation(reading))


def test_a_place_of_a_trial_goes_before_whatever_the_flag_says():
    slot = OpenSlot(CanarySlot("t", 2, 1), "b48", 17, {"batch_size": 48}, hold=True)

    for reading in (FlagReading(OFF), FlagReading(ON), FlagReading(problem="unreadable")):
        found = next_arm(Situation(reading, canary=slot))
        assert ("b48", "canary", 17, slot.slot) == (
            found.arm, found.why, found.seed, found.canary,
        )  # fmt: skip
        assert {"compilegate:trial": "t", "compilegate:release": "hold"} == found.tags


def test_the_judges_confirmations_are_made_in_its_order():
    review = asked("baseline", "compile", "baseline")

    assert ("baseline", "confirm", {}, True, "d1") == told(on(review=review))
    second = told(on(review=review, in_flight=[begun(11, "baseline", confirm=True)]))
    assert ("compile", "confirm", {"compiler": "torch_compile"}, True, "d1") == second
    since = [ran(11, "baseline", confirm=True), ran(12, confirm=True)]
    assert ("baseline", "confirm", {}, True, "d1") == told(on(review=review, runs=since))


def test_confirmations_that_are_all_begun_are_not_made_again():
    flying = [begun(11, "baseline", confirm=True), begun(12, confirm=True)]

    assert FOLLOWED == told(on(review=asked("baseline", "compile"), in_flight=flying))


def test_a_run_that_the_judge_knew_of_is_no_answer_to_what_it_asked():
    known = [ran(8, "baseline", confirm=True)]  # ended at 850, the judge looked at 1000

    assert "confirm" == told(on(review=asked("baseline"), runs=known))[1]


def test_a_baseline_that_the_judge_lacks_is_made():
    assert ("baseline", "refresh", {}, False, "d1") == told(
        on(review=asked("baseline", confirm=False))
    )


def test_what_the_judge_said_of_another_candidate_is_not_followed():
    assert FOLLOWED == told(on(review=asked("b48")))


def test_a_watch_that_asks_for_nothing_leaves_it_to_the_flag():
    for review in (Review(1, "r0", "t1", "compile"), asked("compile", confirm=False)):
        assert FOLLOWED == told(on(review=review))


def test_every_so_many_runs_one_is_of_the_baseline():
    runs = [ran(number) for number in range(5)]

    assert FOLLOWED == told(on(runs=runs[:4]))
    assert ("baseline", "refresh", {}, False, "d1") == told(on(runs=runs))
    assert FOLLOWED == told(on(runs=[*runs, ran(6, "baseline")]))


def test_runs_on_their_way_count_for_the_refresh():
    runs = [ran(number) for number in range(4)]

    assert "refresh" == told(on(runs=runs, in_flight=[begun(5)]))[1]
    assert FOLLOWED == told(on(runs=runs, in_flight=[begun(5), begun(6, "baseline")]))


def test_a_baseline_that_says_nothing_is_no_refresh():
    runs = [ran(number) for number in range(5)]
    for wanting in (ran(6, "baseline", counts=False), ran(6, "baseline", result={})):
        assert "refresh" == told(on(runs=[*runs, wanting]))[1]


def test_a_stale_flag_that_stayed_on_is_refreshed_like_one_on_probation():
    reading = FlagReading(replace(ON, state="stale"), "text")
    runs = [ran(number) for number in range(REFRESH_EVERY)]

    assert "refresh" == told(Situation(reading, runs=runs))[1]


def test_there_is_no_refresh_once_the_probation_is_over():
    permanent = FlagReading(replace(ON, state="permanent"), "text")

    assert FOLLOWED == told(Situation(permanent, runs=[ran(number) for number in range(20)]))


@given(
    flag=st.builds(
        Flag,
        enabled=st.booleans(),
        state=st.sampled_from(STATES),
        candidate=st.sampled_from([None, "compile"]),
        overrides=st.just({"compiler": "torch_compile"}),
    ),
    problem=st.sampled_from([None, *PROBLEMS]),
    runs=st.lists(st.sampled_from(["baseline", "compile"]), max_size=12),
    wanted=st.lists(st.sampled_from(["baseline", "compile", "other"]), max_size=4),
    confirm=st.booleans(),
)
def test_nothing_but_a_flag_that_is_on_and_understood_trains_a_candidate(
    flag, problem, runs, wanted, confirm
):
    situation = Situation(
        FlagReading(flag, "text", problem=problem),
        runs=[ran(number, arm) for number, arm in enumerate(runs)],
        review=asked(*wanted, confirm=confirm, at=0),
    )

    found = next_arm(situation)

    followed = flag.enabled and problem is None
    assert found.arm == "baseline" or (followed and found.arm == flag.candidate)
    assert dict(found.overrides) == ({} if found.arm == "baseline" else flag.overrides)
    assert not found.confirm or (followed and confirm)
