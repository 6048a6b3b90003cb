"""Which arm the next run trains, as a table of situations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.decision import ProbationStep, RequestedArm
from compilegate.domain.flag import OFF, STATES, Flag
from compilegate.domain.production.begin import PROBLEMS, FlagReading, Situation, next_arm
from compilegate.domain.production.canary import Choice
from compilegate.domain.records.production import BegunRun, CanarySlot, ProductionRun, Review

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z")
FOLLOWED = ("compile", "flag", {"compiler": "torch_compile"}, False, "d1")


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


def review_of(*arms, confirm=True, at=1000):
    runs = tuple(RequestedArm(arm, confirm) for arm in arms)
    return Review(at, "r0", "t1", "compile", next=ProbationStep(runs, "why"))


def on(**more):
    return Situation(FlagReading(ON, "text"), **more)


def with_flag(runs=(), **changes):
    return Situation(FlagReading(replace(ON, **changes), "text"), runs=runs)


FIVE = [ran(number) for number in range(5)]
BASELINE_ON = ("baseline", "refresh", {}, False, "d1")
CONFIRM = ("baseline", "confirm", {}, True, "d1")
CONFIRM_MINE = ("compile", "confirm", {"compiler": "torch_compile"}, True, "d1")
CHECKS = review_of("baseline", "compile", "baseline")
SITUATIONS = {
    "off": (Situation(FlagReading(OFF)), ("baseline", "scheduled", {}, False, None)),
    "reverted": (
        with_flag(enabled=False, state="reverted"), ("baseline", "scheduled", {}, False, None)),
    "stale and off": (
        with_flag(enabled=False, state="stale"), ("baseline", "stale", {}, False, None)),
    "on without a candidate": (
        with_flag(candidate=None), ("baseline", "scheduled", {}, False, None)),
    **{
        problem: (
            Situation(FlagReading(ON, "text", problem=problem, explanation="why")),
            ("baseline", problem, {}, False, None))
        for problem in PROBLEMS
    },
    **{state: (with_flag(state=state), FOLLOWED) for state in ("probation", "permanent", "stale")},
    "the judge's first confirmation": (on(review=CHECKS), CONFIRM),
    "its second, the first begun": (
        on(review=CHECKS, in_flight=[begun(11, "baseline", confirm=True)]), CONFIRM_MINE),
    "its third, two made": (
        on(review=CHECKS, runs=[ran(11, "baseline", confirm=True), ran(12, confirm=True)]),
        CONFIRM),
    "all confirmations begun": (
        on(review=review_of("baseline", "compile"),
           in_flight=[begun(11, "baseline", confirm=True), begun(12, confirm=True)]),
        FOLLOWED),
    # It ended at 850, the review was at 1000.
    "a run that the judge knew of": (
        on(review=review_of("baseline"), runs=[ran(8, "baseline", confirm=True)]), CONFIRM),
    "a baseline that the judge lacks": (
        on(review=review_of("baseline", confirm=False)), BASELINE_ON),
    "a review of another candidate": (on(review=review_of("b48")), FOLLOWED),
    "a review of another candidate and the baseline": (
        on(review=review_of("baseline", "b48")), FOLLOWED),
    "a review without a request": (on(review=Review(1, "r0", "t1", "compile")), FOLLOWED),
    "a request for the candidate": (on(review=review_of("compile", confirm=False)), FOLLOWED),
    "four runs": (on(runs=FIVE[:4]), FOLLOWED),
    "five runs": (on(runs=FIVE), BASELINE_ON),
    "a baseline since": (on(runs=[*FIVE, ran(6, "baseline")]), FOLLOWED),
    "a baseline that is no evidence": (
        on(runs=[*FIVE, ran(6, "baseline", counts=False)]), BASELINE_ON),
    "a baseline that failed": (on(runs=[*FIVE, ran(6, "baseline", result={})]), BASELINE_ON),
    "a fifth run on its way": (on(runs=FIVE[:4], in_flight=[begun(5)]), BASELINE_ON),
    "a baseline on its way": (
        on(runs=FIVE[:4], in_flight=[begun(5), begun(6, "baseline")]), FOLLOWED),
    "five runs of a stale flag": (with_flag(state="stale", runs=FIVE), BASELINE_ON),
    "many runs once permanent": (with_flag(state="permanent", runs=FIVE * 4), FOLLOWED),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_arm_of_the_next_run_and_why(situation):
    now, expected = SITUATIONS[situation]
    choice = next_arm(now)

    assert expected == (
        choice.arm, choice.why, dict(choice.overrides), choice.confirm, choice.decision_id,
    )  # fmt: skip


def test_a_place_of_a_trial_goes_before_whatever_the_flag_says():
    slot = Choice("b48", "canary", {"batch_size": 48}, canary=CanarySlot("t", 2, 1), seed=17)

    for reading in (FlagReading(OFF), FlagReading(ON), FlagReading(problem="unreadable")):
        assert slot == next_arm(Situation(reading, canary=slot))


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
    requested=st.lists(st.sampled_from(["baseline", "compile", "other"]), max_size=4),
    confirm=st.booleans(),
)
def test_nothing_but_a_flag_that_is_on_and_understood_trains_a_candidate(
    flag, problem, runs, requested, confirm
):
    situation = Situation(
        FlagReading(flag, "text", problem=problem),
        runs=[ran(number, arm) for number, arm in enumerate(runs)],
        review=review_of(*requested, confirm=confirm, at=0),
    )

    choice = next_arm(situation)

    followed = flag.enabled and problem is None
    assert choice.arm == "baseline" or (followed and choice.arm == flag.candidate)
    assert dict(choice.overrides) == ({} if choice.arm == "baseline" else flag.overrides)
    assert not choice.confirm or (followed and confirm)
