"""What each record of the ledger becomes in the timeline: title, tone and name in the charts."""

from dataclasses import replace

import pytest

from compilegate.domain.decision import RequestedFullRun
from compilegate.domain.flag import Flag
from compilegate.domain.reasons import Reason, advice
from compilegate.domain.records.flags import Author, FlagVersion
from compilegate.domain.records.ledger import Unlocked
from compilegate.domain.records.production import (
    TEAM,
    BegunRun,
    CanaryClosed,
    CanaryRound,
    CapacityWait,
    IgnoredJob,
    RegistrationChange,
    Review,
)
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    TrialDecided,
    TrialFailed,
    TrialStarted,
)
from compilegate.report.history import timeline as module
from compilegate.report.history.timeline import folded, timeline
from compilegate.report.history.view import FAULT_VARIABLE, Event
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.report.histories import flag, view_of

AT = int(BEGIN)
ON, OFF = Flag(True, "probation", "fast", decision_id="d"), Flag(False, "off")
FAULT = {"field": f"training.environment.{FAULT_VARIABLE}", "after": "lr"}


def changed(action, by="evaluate", to=ON, **more):
    return FlagVersion(1, AT, "c", by, action, "because.", to.to_json(), **more)


def event(record):
    (only,) = timeline(view_of([], record.to_entry())).events
    return only


@pytest.mark.parametrize(
    ("record", "title", "tone", "mark", "words"),
    [
        (changed("enable"), "Turned on: fast", "good", "on", "because."),
        (changed("stale", to=OFF), "Changed since the proof", "open", "stale",
         "because. The flag is off."),
        (changed("of_later"), "Of_later: fast", "", None, "because."),
        (changed("set", "human:ana"), "Turned on by hand: fast", "open", "ana: set",
         "by ana: because."),
        (changed("revert", overrode=Author("human:bo", AT, "freeze.")),
         "Turned off automatically: fast", "bad", "off",
         "because. This replaces the change by bo: “freeze”."),
        (TrialFailed(AT, "t1", reason="lost"), "Trial t1 failed", "bad", None, "lost"),
        (TrialDecided(AT, "t2", "stay_off"), "Trial t2 decided: leave it off", "open", None, ""),
        (TrialStarted(AT, "x-t1"), "Trial begins", "", None, "trial t1"),
        (Unlocked(AT, "e", "human:ana", "lost"), "Lock released by hand", "open", None,
         "by ana: lost"),
        (IgnoredJob(AT, "j", "arn:etl", "job_of_another_role"), "A job did not count", "open", None,
         f"j ran as arn:etl. {advice('job_of_another_role')}"),
        (BegunRun(AT, "r1", "arn:r1", "fast", "flag", 17, 1, "k", "s"), "A run is in progress",
         "open", None, "run r1 trains fast: the flag is on. Its end is not recorded yet."),
        (CanaryRound("t1", 1, (RequestedFullRun("baseline", 17), RequestedFullRun("fast", 18)), {},
                     "j", AT, 60, True, at=AT), "Canary runs begin", "", None,
         "The next 2 runs of production train in turn: baseline, fast."),
        (ApprovalAnswer(AT, "t1", "human:ana", False), "Not approved", "", "not approved",
         "by ana: no reason recorded"),
        (TrialDecided(AT, "t1", "promote", reasons=("a.", "b")),
         "Trial t1 decided: turn it on", "good", None, "a; b."),
        (ApprovalRequested(AT, AT + 9, "t1", candidate="fast"), "Waits for approval", "open", None,
         "“fast” takes effect once a person approves it."),
        (ApprovalAnswer(AT, "t1", "human:ana", True, "fine"), "Approved", "", "approved",
         "by ana: fine"),
        (CanaryClosed(AT, "t1", 1, "complete"), "Canary runs end", "", None,
         "all its runs have their results."),
        (CanaryClosed(AT, "t1", 1, "of_later"), "Canary runs end", "open", None, "of_later."),
        (CapacityWait(AT, "r1", 1, "j", "fast", "none left", wait_seconds=60),
         "Waits for machines", "open", None, "run r1, fast: none left; tries again in 60 s"),
        (CapacityWait(AT, "r1", 1, "j", "fast", "none", wait_seconds=60, next_instance_type="ml.x"),
         "Waits for machines", "open", None, "run r1, fast: none; tries ml.x next"),
        (RegistrationChange(1, True, AT), "Registered", "", None, "the team starts its runs"),
        (RegistrationChange(1, True, AT, "human:ana", document={"schedule": "daily"}),
         "Registered", "", None, "by ana; schedule daily"),
        (RegistrationChange(2, True, AT, "human:ana", ({"field": "a"}, {"field": "b"})),
         "Registered again", "", None, "by ana; changed: a, b"),
        (RegistrationChange(2, True, AT, "human:ana", (FAULT,)), "Fault injected on purpose", "bad",
         "fault injected",
         "From now on every job with the compiler trains with lr (training.environment, registered "
         "by ana). The baseline has no fault."),
        (RegistrationChange(2, True, AT, "human:ana", ({**FAULT, "after": None},)),
         "Injected fault removed", "", None, "by ana"),
        (RegistrationChange(3, False, AT, "human:ana"), "Retired from production", "off", "retired",
         "by ana; history, flag and evidence stay"),
    ],
)  # fmt: skip
def test_a_record_has_its_line(record, title, tone, mark, words):
    line = event(record)

    assert (title, tone, mark, float(AT)) == (line.title, line.tone, line.mark, line.at)
    assert words == line.text


@pytest.mark.parametrize(
    ("record", "links"),
    [
        (TrialDecided(AT, "t1", "promote", "d"), ["d"]),
        (changed("enable", details={"decision_key": "d", "evidence_key": "e"}), ["d", "e"]),
        (changed("enable", details={"decision_key": None, "evidence_key": "e"}), ["e"]),
    ],
)
def test_a_line_names_the_documents_that_it_rests_on(record, links):
    assert links == event(record).links


@pytest.mark.parametrize(
    ("changes", "end", "quiet"),
    [
        *(({"why": why}, "; eval_loss 0.9130; 4.39 h; $158.00.", why in ("scheduled", "flag",
           "refresh", "holdback"))
          for why in ("scheduled", "flag", "refresh", "holdback", "confirm", "canary")),
        ({"metric": None, "wall_seconds": None, "usd": None}, "the flag is on.", True),
        ({"metric_name": "f1"}, "the flag is on; 4.39 h; $158.00.", True),
        ({"finished": None}, "$158.00.", False), ({"counts": False}, "; no evidence.", False),
        ({"finished": False, "reason": "lost."}, "; lost.", False),
        ({"confirm": True}, "; checks the alarm.", False),
        ({"launched_by": TEAM}, "; launched by the team.", False),
        ({"details": {"spec_key": "bad"}}, "; with the injected fault (lr).", False),
        ({"details": {"compile_bundle": {"state": "gone"}}}, "was not restored (gone).", False),
        ({"details": {"scheduled": "2026-09-22T02:03:04Z"}}, "for 2026-09-22 02:03.", True),
    ],
)  # fmt: skip
def test_a_run_says_what_it_reached_and_is_uneventful_if_there_is_nothing_else(changes, end, quiet):
    (line,) = timeline(view_of([production_run(1, **changes)], faults={"bad": "lr"})).events
    failed = changes.get("finished") is False

    assert f"Run 1: compile{' failed' if failed else ''}" == line.title
    assert ("bad" if failed else "", quiet, 1.0) == (line.tone, line.quiet, line.place)
    assert line.text.endswith(end)


def titles(view):
    return [(line.title, line.place) for line in timeline(view).events]


def test_a_run_has_begun_until_it_ends_and_did_not_follow_the_flag_either_way():
    begun = BegunRun(
        AT + DAY, "r0000001", "arn:r1", "baseline", "flag", 17, 1, "k", "s",
        flag_problem="unreadable", flag_explanation="no answer",
    )  # fmt: skip
    other = replace(begun, flag_problem="of_later")
    lines = timeline(view_of([], begun.to_entry())).events

    assert ["Flag not followed", "A run is in progress"] == [one.title for one in lines]
    assert "no answer; the run trains the baseline." == lines[0].text
    run = production_run(1)
    ended = [titles(view_of([run], one.to_entry())) for one in (begun, other)]
    assert [[("Flag not followed", 1.5), ("Run 1: compile", 1.0)],
            [("Run 1: compile", 1.0)]] == ended  # fmt: skip


RUNS = [production_run(number, started_at=BEGIN + number) for number in range(1, 13)]


def review(number, *codes, trial="t1", **more):
    reasons = tuple(Reason(code, f"{code} of {number}") for code in codes)
    run = RUNS[number - 1]
    return Review(int(run.ended_at), run.run, trial, "compile", reasons=reasons, **more).to_entry()


REVIEWS = [
    (review(1, "alarm"), "alarm"), (review(2, "alarm"), None),
    (review(3, "alarm_cleared"), "cleared"), (review(4, "alarm_cleared"), None),
    (review(5, "alarm", "alarm_cleared"), "alarm"), (review(6, "alarm", "alarm_cleared"), None),
    (review(7, "alarm", trial="t2"), "alarm"), (review(8, "alarm_cleared"), "cleared"),
    (review(9, "probation_goes_on"), None), (review(10, "alarm_cleared"), "cleared"),
    (review(11, "lost", message_kind="slower", notes=(Reason("a", "slow"), Reason("b", "s"))),
     "slower"),
    (review(12, "lost", "more", message_kind="failed"), "unproven"),
]  # fmt: skip


def test_an_alarm_and_its_end_stand_once_right_after_the_run_that_was_reviewed():
    """Though all runs had started before the first ended; of one moment the run comes first."""
    changes = [
        {**flag(number, 0, ON), "at": int(RUNS[place].ended_at)}
        for number, place in enumerate((0, 2, 11), 1)
    ]
    lines = timeline(view_of(RUNS, *(one for one, _ in REVIEWS), *changes)).events
    made = {number: kind for number, (_, kind) in enumerate(REVIEWS, 1) if kind}

    of_reviews = [line for line in lines if line.kind not in ("run", "flag")]
    assert [(kind, n + 0.5) for n, kind in made.items()] == [(e.kind, e.place) for e in of_reviews]
    for change, kind in zip(changes, ("alarm", "cleared", "unproven"), strict=True):
        assert ["run", kind, "flag"] == [e.kind for e in lines if e.at == change["at"]]
    alarm, cleared, *_, slower, unproven = (line.text for line in of_reviews)
    assert alarm.startswith("alarm of 1. By itself an alarm turns nothing off: 3 to 12 runs")
    assert "alarm_cleared of 3; nothing was changed." == cleared
    assert ("slow; s.", "lost of 12; more of 12.") == (slower, unproven)


def test_a_damaged_record_is_named():
    (line,) = timeline(view_of([], {"kind": "failed", "at": AT, "trial": 3})).events

    assert ("A record cannot be read", "bad") == (line.title, line.tone)
    assert "is damaged" in line.text


def test_of_very_many_events_the_latest_stay(monkeypatch):
    monkeypatch.setattr(module, "MOST_LISTED", 2)
    runs = [production_run(number) for number in range(1, 6)]
    view = view_of(runs)

    assert [("Run 4: compile", 4.0), ("Run 5: compile", 5.0)] == titles(view)
    assert 3 == timeline(view).left_out


def test_a_long_row_of_uneventful_runs_is_one_line_and_that_of_an_alarm_stays():
    arms, metrics = "baseline compile", (1.0, 2.0, 4.0, None)
    runs = [production_run(n, arms.split()[n % 2], metric=metrics[n % 4]) for n in range(1, 15)]
    view = view_of([*runs, *(production_run(n, metric=None) for n in range(15, 19))])

    def quiet(*numbers):
        return [Event(float(n), "run", f"Run {n}", place=float(n), quiet=True) for n in numbers]

    change, alarm = Event(0.0, "flag", "change"), Event(0.0, "alarm", "alarm")
    rows = [*quiet(1, 2, 3, 4), change, *quiet(5, 6, 7), change, *quiet(8, 9, 10, 11, 12), alarm,
            alarm, *quiet(13), change, *quiet(15, 16, 17, 18)]  # fmt: skip

    def row(first, last, text):
        return Event(float(last), "run", f"Runs {first} to {last}", text, place=float(last))

    assert [
        row(1, 4, "2 runs of compile, eval_loss 2.000 on average; 2 runs of baseline, "
                  "eval_loss 2.500 on average."),
        change, *quiet(5, 6, 7), change,
        row(8, 11, "2 runs of baseline, eval_loss 2.500 on average; 2 runs of compile, "
                   "eval_loss 2.000 on average."),
        *quiet(12), alarm, alarm, *quiet(13), change, row(15, 18, "4 runs of compile."),
    ] == folded(view, rows)  # fmt: skip
