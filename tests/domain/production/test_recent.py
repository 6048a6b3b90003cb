"""When a window of the ledger is enough for a step, by what could be missing from it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.domain.ledger_keys import CLOCKS_APART_SECONDS
from compilegate.domain.production import recent
from compilegate.domain.production.attempts import longest_run_seconds
from compilegate.domain.production.begin import FlagReading, Situation
from compilegate.domain.production.history import Promotion, WorkloadHistory
from compilegate.domain.records.production import (
    BegunRun,
    CanaryRound,
    ProductionRun,
    RegistrationChange,
    Review,
)
from tests.domain.evidence_builder import FINGERPRINT
from tests.domain.production.run_builder import BEGIN, DAY, METRIC, production_run
from tests.domain.workload_builder import SOUND

NOW = BEGIN + 100 * DAY
SINCE, LONGEST = NOW - 20 * DAY, 2 * DAY
SURE = SINCE + LONGEST
ON = Flag(True, "permanent", "compile", {}, "d", "2026-09-21T13:33:20Z")
EVIDENCE: dict[str, Any] = {"quality": {"history": [1.0]}}


def ran(day: float, arm: str = "compile", **changed: Any) -> ProductionRun:
    """The run of so many days ago, recorded at its end."""
    at = NOW - round(day * DAY)
    run = production_run(1, arm, started_at=at, fingerprint=dict(FINGERPRINT), **changed)
    return replace(run, run=naming.trial_id(1000 * at), job=f"j{at}", at=int(run.ended_at))


def reviewed(run: ProductionRun, runs: int, **changed: Any) -> Review:
    seen = Review(int(run.ended_at) + 10, run.run, "t", "compile", runs=runs, launched_by=("team",))
    return replace(seen, **changed)


RUNS = [ran(day) for day in range(12, 0, -1)]
REVIEWS = [reviewed(run, 100 + place) for place, run in enumerate(RUNS)]


def promotion(state: str = "permanent", at: int = BEGIN, since: int = BEGIN + DAY) -> Promotion:
    return Promotion("t", "compile", at, since, replace(ON, state=state), 2, metric=METRIC)


def window(runs: list[ProductionRun], reviews: list[Review], **more: Any) -> WorkloadHistory:
    return WorkloadHistory(since=SINCE, runs=tuple(runs), reviews=tuple(reviews), **more)


def is_enough(past: WorkloadHistory, standing: Promotion, evidence: Any = EVIDENCE) -> bool:
    return recent.enough_to_review(past, standing, evidence, longest=LONGEST)


BAD = {"finished": False}
HELD = [*RUNS[:-3], ran(3, "baseline"), *[ran(day) for day in (2.7, 2.3, 1.9)]]


@pytest.mark.parametrize(
    ("past", "standing", "enough"),
    [
        (window(RUNS, REVIEWS), promotion(), True),
        (window(RUNS, REVIEWS), promotion("probation", at=SURE), True),
        (window(RUNS, REVIEWS), promotion("probation", at=SURE - 1), False),
        (window(RUNS, []), promotion(), False),
        (window(RUNS, REVIEWS[:-1]), promotion(since=REVIEWS[-1].at), False),
        (window([replace(one, started_at=SURE - 1) for one in RUNS], REVIEWS), promotion(), False),
        (window([*RUNS, ran(0.5, **BAD)], REVIEWS), promotion(), True),
        (window([*RUNS, ran(0.5, **BAD), ran(0.25, **BAD)], REVIEWS), promotion(), False),
        (replace(window([ran(3, "baseline"), ran(1, **BAD)], REVIEWS), since=NOW - 60 * DAY),
         promotion(), False),
        (replace(window([ran(4), ran(3, "baseline"), ran(1, **BAD)], REVIEWS),
                 since=NOW - 60 * DAY), promotion(), True),
        (window(RUNS[-5:], REVIEWS), promotion(), False),
        (window(HELD, REVIEWS), promotion(), True),
        (window(HELD[3:], REVIEWS), promotion(), False),
        (window([replace(one, started_at=SURE) for one in RUNS], REVIEWS), promotion(), True),
        # Five runs after the baseline's; two baselines, the later of which counts.
        (window([*HELD[3:], ran(1.5), ran(1.2)], REVIEWS), promotion(), False),
        (window([ran(12.5, "baseline"), *HELD], REVIEWS), promotion(), True),
        (window([ran(11.5, "baseline"), *HELD[2:]], REVIEWS), promotion(), False),
        (WorkloadHistory(runs=tuple(RUNS)), promotion("probation"), True),
        (window(RUNS, [], registrations=(
            RegistrationChange(1, True, at=SINCE + CLOCKS_APART_SECONDS),
        )), promotion(), True),
        (window(RUNS, [], registrations=(
            RegistrationChange(1, True, at=SINCE + CLOCKS_APART_SECONDS - 1),
        )), promotion(), False),
        (window(RUNS, [], registrations=(
            RegistrationChange(2, True, at=NOW),
        )), promotion(), False),
    ],
)  # fmt: skip
def test_a_review_needs_what_it_counts_compares_and_goes_on_from(past, standing, enough):
    assert enough == is_enough(past, standing)


@pytest.mark.parametrize(("at", "enough"), [(SURE, True), (SURE - 1, False)])
def test_of_what_was_not_measured_the_last_review_is_enough(at, enough):
    assert enough == is_enough(window([], [replace(REVIEWS[0], at=at)]), promotion(), None)
    assert is_enough(window([], []), promotion("probation", at=SURE), None)


@pytest.mark.parametrize(("earlier", "enough"), [(24, True), (23, False)])
def test_a_probation_without_a_history_of_the_teams_needs_24_baseline_runs_before_it(
    earlier, enough
):
    arm = {"name": "baseline", "runs": [{"fingerprint": FINGERPRINT}]}
    evidence = {"quality": {"metric": METRIC, "history": []}, "arms": [arm]}
    runs = [*(ran(17.9 - n / 2, "baseline") for n in range(earlier)), ran(0.5, "baseline")]

    assert enough == is_enough(window(runs, []), promotion("probation", at=NOW - DAY), evidence)
    assert is_enough(window(runs, []), promotion(at=NOW - DAY), evidence)


def test_runs_before_the_window_are_counted_by_the_review_that_has_seen_most():
    late = replace(
        REVIEWS[3], at=REVIEWS[-1].at + 5
    )  # was begun before the last one, and ended late
    new = [ran(0.5), ran(0.4, "baseline")]
    past = window([*RUNS, *new], [*REVIEWS, late])

    before = recent.before_window(past, promotion(), longest=LONGEST)
    assert recent.Before(111 + 2 - 14, frozenset({"team"})) == before
    assert recent.Before() == recent.before_window(past, promotion(at=SURE), longest=LONGEST)
    assert None is recent.before_window(past, promotion("probation"), longest=LONGEST)


@pytest.mark.parametrize(
    ("seconds", "unsure"), [(1, False), (0, True), (-599, True), (-600, False)]
)
def test_a_run_that_a_review_may_have_missed_is_no_guess(seconds, unsure):
    at = REVIEWS[-1].at + seconds
    other = replace(ran(0.9), started_at=at - 60.0, ended_at=at - 0.0, at=at - 30)
    past = window([*RUNS, other], REVIEWS)

    before = recent.before_window(past, promotion(), longest=LONGEST)
    assert unsure == (before is None)
    seen = recent.before_window(
        window([*RUNS, other], [*REVIEWS[:-1], reviewed(other, 3), REVIEWS[-1]]), promotion(),
        longest=LONGEST,
    )  # fmt: skip
    assert (seconds > 0) == (seen.runs == 111 + 1 - 13)


BEGUN = BegunRun(
    NOW - DAY, naming.trial_id(1000 * (NOW - DAY)), "e", "compile", "flag", 7, 7, "s", "s"
)
RUN, KNOWN = naming.trial_id(1000 * NOW), round(SINCE + longest_run_seconds(SOUND))


def situation(state: str = "permanent", at: int = NOW - DAY, **more: Any) -> Situation:
    review = replace(REVIEWS[-1], at=at)
    return Situation(FlagReading(replace(ON, state=state)), review=review, **more)


@pytest.mark.parametrize(
    ("begun", "now", "enough"),
    [
        ([BEGUN], situation(), True),
        ([], situation(), False),
        ([replace(BEGUN, run=RUN)], situation(), False),
        ([BEGUN], situation(at=KNOWN), True), ([BEGUN], situation(at=KNOWN - 1), False),
        ([BEGUN], Situation(FlagReading(Flag(False, "off"))), True),
        ([BEGUN], replace(situation(), review=None,
                          reading=FlagReading(replace(ON, since="2026-12-30T00:00:00Z"))), True),
        ([BEGUN], situation("probation", runs=RUNS[-5:]), True),
        ([BEGUN], situation("probation", runs=[ran(3, "baseline")]), True),
        ([BEGUN], situation("probation", runs=[ran(19.9, "baseline")]), False),
        ([BEGUN], replace(situation(), review=None), False),
        ([BEGUN], situation("probation"), False),
        ([BEGUN], situation("probation", runs=RUNS[-4:]), False),
        ([BEGUN], situation("probation", runs=[ran(3, "baseline", **BAD)]), False),
    ],
)  # fmt: skip
def test_a_run_that_begins_needs_the_last_review_an_earlier_run_and_a_baseline(begun, now, enough):
    past = WorkloadHistory(since=SINCE, begun=tuple(begun))
    assert recent.enough_to_begin(WorkloadHistory(), now, SOUND, run=RUN, at=NOW)
    assert enough == recent.enough_to_begin(past, now, SOUND, run=RUN, at=NOW)


@pytest.mark.parametrize(("at", "enough"), [(SINCE, True), (SINCE - 1, False)])
def test_slots_of_an_open_round_may_be_taken_since_it_opened(at, enough):
    opened = CanaryRound("t2", 1, (), {}, "job", NOW + DAY, 60, hold=False, at=at)
    past = WorkloadHistory(since=SINCE, begun=(BEGUN,), rounds=(opened,))
    assert enough == recent.enough_to_begin(past, situation(), SOUND, run=RUN, at=NOW)


def test_windows_grow_to_everything_and_have_the_run_in_them():
    old = naming.trial_id(1000 * (NOW - 30 * DAY))
    assert [NOW - 30 * DAY, NOW - 30 * DAY, NOW - 112 * DAY, NOW - 448 * DAY, -math.inf] == (
        recent.windows(NOW, old)
    )
    assert NOW - 7 * DAY == recent.windows(NOW)[0]
