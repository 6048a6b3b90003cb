"""A run that begins: the arm that is next, or the baseline if its job cannot be built."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain import naming
from compilegate.domain.decision import ProbationStep, RequestedArm
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, STATES, Flag
from compilegate.domain.production import begin
from compilegate.domain.production.attempts import Attempt, longest_run_seconds
from compilegate.domain.production.begin import (
    PROBLEMS,
    BeginInput,
    FlagReading,
    RunStart,
    Situation,
    choose_run,
    next_arm,
    read_flag,
    situation,
)
from compilegate.domain.production.canary import Choice
from compilegate.domain.production.history import Promotion, WorkloadHistory, history
from compilegate.domain.production.job import RunJobs
from compilegate.domain.production.registration import TrainedJob
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import BegunRun, CanarySlot, ProductionRun, Review
from compilegate.domain.request.build import JobSite
from compilegate.facts import load_facts
from compilegate.usecases.job_requests import request_limits
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.domain.workload_builder import SOUND, change

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
TRAINED = TrainedJob(SOUND, "code")
SITE = JobSite("prod", "data", "us-east-1", "arn:aws:iam::123456789012:role/compilegate-")
PROMOTION = Promotion("t", "compile", at=1, since=1, flag=ON, version=1)
INPUTS = BeginInput(
    start=RunStart(SOUND.name, "execution", naming.trial_id(1_793_500_000_000), None),
    reading=FlagReading(ON, ON.to_json()),
    history=history([]),
    jobs=RunJobs(TRAINED, load_facts(), SITE, request_limits()),
    spec_key="spec",
    source_key="source",
    now=1_793_500_000,
)


@dataclass(frozen=True)
class Refusing(RunJobs):
    """The jobs of no run that trains one of these arms can be built."""

    arms: tuple[str, ...] = ()

    def request(self, begun: BegunRun, attempt: Attempt) -> dict[str, Any]:
        if begun.arm in self.arms:
            raise InvalidInputError(f"{begun.arm} is refused")
        return super().request(begun, attempt)


def refusing(*arms: str) -> BeginInput:
    return replace(INPUTS, jobs=Refusing(TRAINED, load_facts(), SITE, request_limits(), arms))


def compared(**proven: Any) -> BeginInput:
    """The flag follows a promotion that was measured on this."""
    reading = replace(INPUTS.reading, promotion=PROMOTION)
    return replace(INPUTS, reading=reading, proven=proven)


def test_a_candidate_whose_job_cannot_be_built_gives_way_to_the_baseline():
    begun = choose_run(refusing("compile"))

    assert ("baseline", "unfit", "unfit", {}, None) == (
        begun.arm, begun.why, begun.flag_problem, begun.overrides, begun.decision_id,
    )  # fmt: skip
    assert "compile is refused" in str(begun.flag_explanation)


def test_a_baseline_that_cannot_be_built_ends_the_run():
    with pytest.raises(InvalidInputError, match="baseline is refused"):
        choose_run(refusing("compile", "baseline"))


def test_a_candidate_that_is_no_longer_what_was_proven_is_stale():
    changed = compared(precision="fp32")

    begun = choose_run(changed)

    assert ("baseline", "stale", None) == (begun.arm, begun.why, begun.flag_problem)
    assert begun.flag_explanation == "precision: was fp32, is bf16"


def test_a_comparison_that_finds_no_difference_changes_nothing():
    same = compared(precision="bf16")

    assert choose_run(INPUTS) == choose_run(same)


@pytest.mark.parametrize(("slot", "asked"), [(None, None), (CanarySlot("t", 2, 1), "last")])
def test_a_run_of_a_trial_ends_with_the_check_and_the_flags_does_not(slot, asked):
    begun = replace(choose_run(INPUTS), canary=slot)

    variables = INPUTS.jobs.request(begun, Attempt(0))["Environment"]
    assert asked == variables.get("COMPILEGATE_EQUIVALENCE")


SINCE = 1_793_000_000
DATED = replace(ON, since="2026-10-26T07:33:20Z")


def test_what_counts_began_since_the_flag_took_its_value_and_may_still_train():
    now, longest = SINCE + 40 * DAY, longest_run_seconds(SOUND)

    def begun(run: str, at: float) -> BegunRun:
        return BegunRun(
            at=int(at), run=run, execution=run, arm="compile", why="flag", seed=17, number=1,
            spec_key="s", source_key="s", overrides={},
        )  # fmt: skip

    def ran(run: str, at: float) -> ProductionRun:
        return replace(production_run(1), run=run, started_at=at, ended_at=at + 9, at=int(at) + 9)

    records = [
        Review(SINCE - 1, "r0", "t", verdict="before"), Review(SINCE, "r1", "t", verdict="first"),
        Review(SINCE + 1, "r2", "t", verdict="last"),
        ran("early", SINCE - 1), ran("at once", SINCE), ran("later", SINCE + 5),
        begun("lost", now - longest - 1), begun("long", now - longest), begun("later", now - 60),
        begun("new", now - 1),
    ]  # fmt: skip
    past = history([record.to_entry() for record in records])
    seen = situation(past, FlagReading(DATED, DATED.to_json()), INPUTS.jobs, now=now)

    assert ["at once", "later"] == [run.run for run in seen.runs]
    assert ["long", "new"] == [run.run for run in seen.in_flight]
    assert "last" == seen.review.verdict
    soon = situation(past, FlagReading(DATED, DATED.to_json()), INPUTS.jobs, now=SINCE + 30)
    assert ["lost", "long", "new"] == [run.run for run in soon.in_flight]


REVERTED = Flag(False, "reverted", "compile")
KEPT = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d2")


def recorded(*flags: Flag, by: str = "evaluate") -> WorkloadHistory:
    return history([
        FlagVersion(
            n, BEGIN + n, f"c{n}", by, "a", "r", one.to_json(), details={"trial": "abcd1234"}
        ).to_entry()
        for n, one in enumerate(flags, start=1)
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "past", "flag", "problem", "repair"),
    [
        (REVERTED.to_json(), recorded(ON, REVERTED), REVERTED, None, False),
        ("no flag", recorded(ON), OFF, "malformed", True),
        (None, recorded(REVERTED), REVERTED, None, True),
        (ON.to_json(), recorded(REVERTED), REVERTED, "differs", True),
        (REVERTED.to_json(), recorded(ON), REVERTED, "differs", True),
    ],
    ids=[
        "off", "malformed", "both off", "on and off", "off and on",
    ],
)  # fmt: skip
def test_a_flag_is_followed_where_parameter_and_ledger_agree(text, past, flag, problem, repair):
    reading = read_flag("/flag", text, past)

    assert (flag, text, problem, repair) == (
        reading.flag, reading.text, reading.problem, reading.repair,
    )  # fmt: skip
    assert (problem is None) == (reading.explanation is None)
    assert problem is None or "/flag" in str(reading.explanation)


def test_a_parameter_that_cannot_be_read_is_no_flag():
    reading = read_flag("/flag", None, recorded(ON), error="denied")

    assert (OFF, None, "unreadable", False) == (
        reading.flag, reading.text, reading.problem, reading.repair,
    )  # fmt: skip
    assert "denied" in str(reading.explanation)


@pytest.mark.parametrize(
    ("flags", "by", "compared"),
    [((ON,), "evaluate", True), ((ON,), "human:ann", False), ((ON, REVERTED), "evaluate", False)],
)
def test_what_a_trial_turned_on_is_compared_with_what_it_measured(flags, by, compared):
    reading = read_flag("/flag", flags[-1].to_json(), recorded(*flags, by=by))

    assert compared == (reading.promotion is not None)


@pytest.mark.parametrize(
    ("scheduled", "started"),
    [(None, 1_790_000_000_123), ("2026-09-19T00:00:00Z", 1_790_000_000_123 - 86_400_000),
     ("2026-11-20T02:00:00Z", 1_795_140_000_000),
     ("2026-11-20T02:00:00+02:00", 1_795_132_800_000), ("2026-11-20T02:00:00", 1_795_140_000_000)],
)  # fmt: skip
def test_a_run_is_of_its_scheduled_time_else_of_its_start(monkeypatch, scheduled, started):
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # a time without a zone is UTC wherever it is read
    time.tzset()
    event = {"workload": "w", "execution": "e", "started": "2026-09-21T14:13:20.123Z"}
    start = RunStart.from_event({**event, "scheduled": scheduled})

    assert RunStart("w", "e", naming.trial_id(started), scheduled) == start
    monkeypatch.undo()
    time.tzset()


# Which arm the next run trains, as a table of situations.


FOLLOW = Flag(
    True, "probation", "compile", {"compiler": "torch_compile"}, "d1", "2026-01-01T00:00:00Z"
)
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
    return Situation(FlagReading(FOLLOW, "text"), **more)


def with_flag(runs=(), held_back=False, **changes):
    reading = FlagReading(replace(FOLLOW, **changes), "text")
    return Situation(reading, runs=runs, held_back=held_back)


FIVE = [ran(number) for number in range(5)]
BASELINE_ON = ("baseline", "refresh", {}, False, "d1")
HELD = ("baseline", "holdback", {}, False, "d1")
CONFIRM = ("baseline", "confirm", {}, True, "d1")
CONFIRM_MINE = ("compile", "confirm", {"compiler": "torch_compile"}, True, "d1")
CHECKS = review_of("baseline", "compile", "baseline")
SITUATIONS = {
    "on without a candidate": (
        with_flag(candidate=None), ("baseline", "scheduled", {}, False, None)),
    **{
        problem: (
            Situation(FlagReading(FOLLOW, "text", problem=problem, explanation="why")),
            ("baseline", problem, {}, False, None))
        for problem in PROBLEMS
    },
    **{state: (with_flag(state=state), FOLLOWED) for state in ("probation", "permanent", "stale")},
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
    "four runs": (on(runs=FIVE[:4]), FOLLOWED),
    "a baseline since": (on(runs=[*FIVE, ran(6, "baseline")]), FOLLOWED),
    "a baseline that is no evidence": (
        on(runs=[*FIVE, ran(6, "baseline", counts=False)]), BASELINE_ON),
    "a fifth run on its way": (on(runs=FIVE[:4], in_flight=[begun(5)]), BASELINE_ON),
    "a baseline on its way": (
        on(runs=FIVE[:4], in_flight=[begun(5), begun(6, "baseline")]), FOLLOWED),
    "its second, the first made": (
        on(review=CHECKS, runs=[ran(11, "baseline", confirm=True)]), CONFIRM_MINE),
    "twice the same, both begun": (
        on(review=review_of("baseline", "baseline"),
           in_flight=[begun(n, "baseline", confirm=True) for n in (11, 12)]),
        FOLLOWED),
    "a run that ended as the judge looked": (
        on(review=review_of("baseline"), runs=[ran(9, "baseline", confirm=True, ended_at=1000.0)]),
        CONFIRM),
    "the candidate that the judge lacks": (
        on(review=review_of("compile", confirm=False)), FOLLOWED),
    "a review of another candidate too": (on(review=review_of("baseline", "b48")), FOLLOWED),
    "five runs after the probation": (with_flag(runs=FIVE, state="permanent"), FOLLOWED),
    "a baseline that failed": (
        on(runs=[*FIVE, ran(6, "baseline", result={"finished": False})]), BASELINE_ON),
    "four runs after a baseline": (
        on(runs=[*FIVE, ran(6, "baseline"), *(ran(n) for n in range(7, 11))]), FOLLOWED),
    "three runs and one on its way": (on(runs=FIVE[:3], in_flight=[begun(5)]), FOLLOWED),
    "a baseline on its way, then four": (
        on(runs=FIVE, in_flight=[begun(5, "baseline"), *map(begun, range(6, 10))]), FOLLOWED),
    "a baseline that began before five": (
        on(in_flight=[*map(begun, range(1, 6)), replace(begun(9, "baseline"), at=0)]), BASELINE_ON),
    "a baseline that began with five": (
        on(in_flight=[replace(begun(n), at=7) for n in range(2, 7)]
           + [replace(begun(1, "baseline"), at=7)]), BASELINE_ON),
    "a run that is held back": (with_flag(state="permanent", held_back=True), HELD),
    "held back on probation": (with_flag(state="probation", held_back=True), FOLLOWED),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_arm_of_the_next_run_and_why(situation):
    now, expected = SITUATIONS[situation]
    choice = next_arm(now)

    assert expected == (
        choice.arm, choice.why, dict(choice.overrides), choice.confirm, choice.decision_id,
    )  # fmt: skip


def test_a_run_is_recorded_with_all_that_it_rests_on():
    start = replace(INPUTS.start, scheduled="2026-11-01T00:00:00Z")

    assert choose_run(replace(INPUTS, start=start)) == BegunRun(
        at=INPUTS.now, run=start.run, execution="execution", arm="compile", why="flag", seed=1,
        number=1, spec_key="spec", source_key="source", overrides=ON.overrides, decision_id="d1",
        scheduled=start.scheduled, flag=ON.to_json(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arm", "confirm", "hold", "held"),
    [
        ("compile", True, True, True),
        ("compile", True, False, False),
        ("compile", False, True, False),
        ("baseline", True, True, False),
    ],
)
def test_a_model_of_a_run_that_checks_an_alarm_stays_back(monkeypatch, arm, confirm, hold, held):
    overrides = ON.overrides if arm == "compile" else {}
    slot = CanarySlot("t", 2, 1)
    choice = Choice(arm, "why", overrides, confirm=confirm, canary=slot, seed=23, tags={"a": "b"})
    monkeypatch.setattr(begin, "next_arm", lambda _: choice)
    trained = TrainedJob(change(SOUND, policy__hold_models=hold), "code")
    run = choose_run(replace(INPUTS, jobs=replace(INPUTS.jobs, trained=trained)))

    assert (23, slot, confirm) == (run.seed, run.canary, run.confirm)
    assert {"a": "b", **({naming.TAG_RELEASE: begin.HOLD} if held else {})} == run.tags
    refused = choose_run(refusing("compile"))
    if arm == "compile":
        assert (False, None, {}) == (refused.confirm, refused.canary, refused.tags)


def test_what_is_held_back_follows_from_the_run_before_it(monkeypatch):
    """The run itself may have begun already, and a later one too."""
    seen = {}
    monkeypatch.setattr(begin, "holds_back", lambda *given, **more: seen.update(more, of=given))
    hour = 3_600_000
    names = [naming.trial_id(1_793_500_000_000 + hour * n) for n in (-1, 0, 1)]
    arms = ("baseline", "compile", "compile")
    earlier = [replace(begun(1, arm), run=name) for name, arm in zip(names, arms, strict=True)]
    kept = replace(KEPT, holdback=0.2)
    choose_run(replace(
        INPUTS, reading=FlagReading(kept, kept.to_json()),
        history=replace(INPUTS.history, begun=tuple(earlier)),
    ))  # fmt: skip

    assert {
        "of": (SOUND, 0.2), "run": names[1], "at": 1_793_500_000.0, "last": 1_793_496_400.0,
        "last_on_baseline": True,
    } == seen  # fmt: skip


def test_only_what_a_trial_turned_on_and_measured_is_compared():
    by_a_person = replace(INPUTS, proven={"precision": "fp32"})

    assert ["compile", "compile"] == [choose_run(one).arm for one in (by_a_person, compared())]


@pytest.mark.parametrize(("at", "seen"), [(SINCE - 1, False), (SINCE, True)])
def test_a_review_counts_from_the_moment_that_the_flag_took_its_value(at, seen):
    past = history([Review(at, "r0", "t", verdict="v").to_entry()])
    now = situation(past, FlagReading(DATED, DATED.to_json()), INPUTS.jobs, now=SINCE + 9)

    assert seen is (now.review is not None)


def test_a_place_of_a_trial_goes_before_whatever_the_flag_says():
    slot = Choice("b48", "canary", {"batch_size": 48}, canary=CanarySlot("t", 2, 1), seed=17)

    for reading in (FlagReading(OFF), FlagReading(FOLLOW), FlagReading(problem="unreadable")):
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


def test_a_permanent_promotion_keeps_having_baseline_runs():
    """By the id of the run and of that before; one that is due follows no other baseline run."""
    held = replace(KEPT, holdback=0.2)
    kept = FlagReading(held, held.to_json())

    def chosen(arms: str) -> list[tuple[str, str]]:
        earlier = [
            replace(begun(1, arm), run=naming.trial_id(1000 * (BEGIN + place * DAY)), at=BEGIN)
            for place, arm in enumerate([arms] * 150)
        ]
        choices = []
        for place, one in enumerate(earlier[1:], 1):
            start = RunStart(SOUND.name, "execution", one.run, None)
            past = replace(INPUTS.history, begun=tuple(earlier[:place]))
            made = choose_run(replace(INPUTS, start=start, reading=kept, history=past))
            choices.append((made.arm, made.why))
        return choices

    choices = chosen("compile")
    assert {("compile", "flag"), ("baseline", "holdback")} == set(choices)
    assert 3 <= choices.count(("baseline", "holdback")) <= 15
    assert {("compile", "flag")} == set(chosen("baseline"))


def test_a_run_has_the_number_after_the_largest_whichever_earlier_ones_are_read():
    """One that began late lies at the edge of what is read, with a number from later on."""
    numbers = [3, 9, 4, 5, 6, 7, 8]
    earlier = [replace(begun(place), number=number) for place, number in enumerate(numbers)]

    made = [
        choose_run(replace(INPUTS, history=replace(INPUTS.history, begun=tuple(earlier[place:]))))
        for place in (0, 1, 7)
    ]

    assert [10, 10, 1] == [one.number for one in made]
