"""Every kind of message: its text as a snapshot, its kind, owner and figures as values.

python -m tests.report.test_notifications    writes the snapshot anew
"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from compilegate.domain.claims import decision_notification
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.flag import Flag
from compilegate.domain.notes import SCRIPT_COMPILES, Note
from compilegate.domain.notes import said as said_of
from compilegate.domain.production.probation import WATCHED
from compilegate.domain.production.recorded_run import NOT_RUN
from compilegate.domain.production.savings import Savings
from compilegate.domain.production.summaries import ChangeOfFlag, TimeWindow, WorkloadWeek
from compilegate.domain.reasons import Reason, advice
from compilegate.domain.records.flags import Author, FlagVersion
from compilegate.domain.records.production import (
    TEAM,
    CapacityWait,
    PlannedTransition,
    ProductionRun,
    Review,
)
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.domain.utc import minute
from compilegate.report.notifications import review
from compilegate.report.notifications.approval import approval_needed
from compilegate.report.notifications.production import attempt_message, flag_changed, swept
from compilegate.report.notifications.weekly_digest import digest, is_quiet
from tests.report import samples
from tests.report.samples import rendered

SNAPSHOT = Path(__file__).parent / "notifications.txt"
NAME, OWNER, STAGE, AT = "bert-docs", "ml-platform", "prod", 1_790_000_000
ON = Flag(enabled=True, state="probation", candidate="compile", decision_id="d1")
STALE = Flag(enabled=False, state="stale", candidate="compile", decision_id="d1")


def _decision():
    source = samples.promote()
    source["context"]["stage"] = STAGE
    report = rendered(source)
    return decision_notification(
        read(Decision, source["decision"]), stage=STAGE, workload=NAME, subject=report.subject,
        text=report.message, owner=OWNER,
    )  # fmt: skip


def _approval(notes=(), **changes):
    request = ApprovalRequested(AT, AT + 86_400, "t1", "e", "d1", "k", "compile")
    decision = replace(read(Decision, samples.promote()["decision"]), **changes)
    return approval_needed(decision, request, workload=NAME, trial="t1", owner=OWNER, stage=STAGE,
                           notes=notes)  # fmt: skip


def changed(why="Code freeze"):
    version = FlagVersion(
        7, AT, "c", "human:ana", "human", why, ON.to_json(), parameter="/flag", decision_id="d1"
    )
    return flag_changed(NAME, version, owner=OWNER, stage=STAGE)


RAN = ProductionRun(
    run="r1", job="j1", arm="compile", started_at=AT, ended_at=AT + 60, counts=True,
    result={"finished": False}, why="flag", status="Failed",
)  # fmt: skip


def failed(why="CUDA out of memory"):
    return attempt_message(replace(RAN, reason=why), NAME, owner=OWNER, stage=STAGE)


def waits(why="CapacityError"):
    wait = CapacityWait(AT, "r1", 1, "j1", "compile", why, 12.0, 300.0, None)
    return attempt_message(wait, NAME, owner=OWNER, stage=STAGE)


def _review(flag, **changes):
    values = {"at": AT, "run": "r1", "trial": "t1", "candidate": "compile", **changes}
    news = review.ReviewNews(NAME, STAGE, Review(**values), flag)
    text = "\n\n".join(review.paragraphs(news, None, None)) + "\n"
    return decision_notification(
        None, stage=STAGE, workload=NAME, subject=review.subject(news, None), text=text,
        owner=OWNER, kind=str(changes["message_kind"]),
    )  # fmt: skip


def _stale():
    changed = (Reason("image_changed", "image: was a, is b"),)
    transition = PlannedTransition("c", "stale", STALE.to_json(), "image: was a, is b", AT)
    return _review(STALE, message_kind="stale", reasons=changed, transition=transition)


def _unwatched():
    notes = (Reason("speed_not_watched", "compile: speed was not watched in 2 production runs"),)
    return _review(ON, message_kind="failed", verdict="continue", notes=notes)


def _alarm():
    reasons = (Reason("alarm", "compile: eval_loss fell", "compile"),)
    return _review(ON, message_kind="alarm", verdict="continue", reasons=reasons,
                   launched_by=(TEAM,))  # fmt: skip


def _week():
    weeks = [WorkloadWeek(NAME, OWNER, "probation", True, "compile", {"compile": 2}, watched=2,
                           probation_runs=12),
             WorkloadWeek("gpt-notes", OWNER, "off", False, trial="t2")]  # fmt: skip
    window = TimeWindow(AT - 7 * 86_400, AT)
    return digest(OWNER, weeks, ["vit-broken"], window, stage=STAGE)


def _swept():
    return swept(NAME, stopped_jobs=["j1"], released_locks_of=["e"], owner=OWNER, stage=STAGE)


# Name, kind and maker of each message.
MESSAGES = [
    ("decision", "decision", _decision),
    ("approval", "approval", _approval),
    ("flag changed", "changed", changed),
    ("run failed", "failed", failed),
    ("run waits", "waiting", waits),
    ("stale", "stale", _stale),
    ("not watched", "failed", _unwatched),
    ("alarm", "alarm", _alarm),
    ("week", "digest", _week),
    ("sweep", "failed", _swept),
]


def snapshot():
    """Subject and text of every message."""
    made = ((name, make()) for name, _, make in MESSAGES)
    return "\n".join(
        f"=== {name}\nSubject: {message.line}\n\n{message.message.rstrip()}\n"
        for name, message in made
    )


def test_the_texts_are_as_stored():
    hint = "write it anew: python -m tests.report.test_notifications"

    assert snapshot() == SNAPSHOT.read_text(encoding="utf-8"), hint


AT_PROD = f"{NAME} --stage {STAGE}"
RUN = {"run": "r1", "job": "j1", "arm": "compile"}


@pytest.mark.parametrize(
    ("make", "kind", "act", "values"),
    [
        (_approval, "approval", f'compilegate flag approve {NAME} --reason "..." --stage {STAGE}',
         {"decision_id": _decision().decision_id, "verdict": "promote"}),
        (changed, "changed", f"compilegate flag history {AT_PROD}",
         {"decision_id": "d1", "flag": {"name": "/flag", "enabled": True, "state": "probation"},
          "figures": {"by": "human:ana", "version": 7, "candidate": "compile"}}),
        (failed, "failed", f"compilegate status {AT_PROD}", {"figures": RUN}),
        (waits, "waiting", f"compilegate status {AT_PROD}", {"figures": RUN}),
        (_swept, "failed", f"compilegate status --stage {STAGE}",
         {"figures": {"stopped_jobs": ["j1"], "released_locks_of": ["e"]}}),
    ],
)  # fmt: skip
def test_programs_get_kind_owner_figures_and_the_next_command(make, kind, act, values):
    message = make()
    expected = {"workload": NAME, "owner": OWNER, "stage": STAGE, "act": act, **values}

    assert kind == message.kind
    assert expected == {name: getattr(message, name) for name in expected}


def test_a_run_that_nothing_was_started_for_and_a_flag_that_is_off_are_said_to_be_so():
    run = replace(RAN, status=NOT_RUN, reason=None)
    message = attempt_message(run, NAME, owner=None, stage=STAGE)
    version = FlagVersion(8, AT, "c", "train", "revert", "fell", STALE.to_json())
    off = flag_changed(NAME, version, owner=None, stage=STAGE)

    assert message.subject.endswith(f"{NAME}: production run was not run")
    assert "reason: not recorded" in message.text
    assert off.subject.endswith(f"{NAME}: train turned the compiler off: fell")


def test_remarks_about_the_job_stand_before_the_commands_that_answer():
    place = {"script": "train.py", "line": 3, "source": "torch.compile(model)"}
    notes = [Note(SCRIPT_COMPILES, place)]
    (text,) = said_of(notes)

    assert f"\n\n{text}\n\nApprove: " in _approval(notes, quality=None).text


JUDGED = SimpleNamespace(subject="the report's", message="the report\n\n")
GONE = PlannedTransition("c#1", "stale", STALE.to_json(), "gone", AT)
RESUMED = replace(GONE, action="resume")
UNSEEN, NO_RECORD = "some of its runs are not watched", "its runs record nothing to judge"


@pytest.mark.parametrize(
    ("values", "report", "words"),
    [
        ({"message_kind": "failed", "verdict": "continue"}, JUDGED, UNSEEN),
        ({"message_kind": "failed", "verdict": "invalid"}, JUDGED, None),
        ({"message_kind": "alarm", "verdict": "continue"}, JUDGED, None),
        ({"message_kind": "failed"}, None, review.SUBJECTS[None]),
        ({"message_kind": "slower", "transition": GONE}, None, review.SUBJECTS["slower"]),
        ({"transition": GONE}, None, review.SUBJECTS["stale"]),
        ({"transition": RESUMED}, None, review.SUBJECTS["resume"]),
        ({"transition": GONE, "differs": (WATCHED,)}, None, NO_RECORD),
        ({"transition": GONE, "differs": (WATCHED, "image")}, None, review.SUBJECTS["stale"]),
        ({"transition": RESUMED, "differs": (WATCHED,)}, None, review.SUBJECTS["resume"]),
    ],
)
def test_the_subject_is_the_judges_verdict_or_what_is_done_to_the_flag(values, report, words):
    news = review.ReviewNews(NAME, STAGE, Review(AT, "r1", "t1", "fast", **values), ON)
    own = f"[compilegate {STAGE}] {NAME}: fast: {words}"

    assert (own if words else "the report's") == review.subject(news, report)


def said(kind, **values):
    return review.say(kind, **values)


WHOSE = {"workload": NAME, "candidate": "fast", "trial": "t1"}
TURNS = {"first": 3, "last": 12}
BY = Author("human:ana", AT, "freeze")
CHANGE = said("change_by", by="human:ana", at=minute(AT), reason="freeze")
ADVICE = [advice("image_changed"), advice("speed_not_watched")]


@pytest.mark.parametrize(
    ("values", "more", "expected"),
    [
        ({}, {}, []), ({"message_kind": "revert"}, {}, []),
        ({"message_kind": "revert", "cooldown_days": 0.5}, {}, [said("cooldown", days=0.5)]),
        ({"message_kind": "alarm", "cooldown_days": 9}, {}, [said("check_by_train", **TURNS)]),
        ({"message_kind": "alarm", "launched_by": ("train",)}, {},
         [said("check_by_train", **TURNS)]),
        ({"message_kind": "alarm", "launched_by": (TEAM, "train")}, {},
         [said("check_by_both", **TURNS)]),
        ({"message_kind": "alarm", "launched_by": (TEAM,)}, {},
         [said("check_by_team", **TURNS, every=6, jobs=18, train=f"compilegate train {AT_PROD}")]),
        ({"reasons": (Reason("image_changed", "x"),),
          "notes": (Reason("speed_not_watched", "unseen"),)}, {}, ["unseen.", *ADVICE]),
        ({}, {"held_by": BY}, [said("held", change=CHANGE)]),
        ({}, {"superseded_by": BY}, [said("superseded", change=CHANGE)]),
        ({}, {"overrode": BY}, [said("overrode", change=CHANGE)]),
    ],
)  # fmt: skip
def test_a_message_says_what_follows_from_the_review(values, more, expected):
    news = review.ReviewNews(NAME, STAGE, Review(AT, "r1", "t1", "fast", **values), ON, **more)

    assert ["the report", *expected] == list(review.paragraphs(news, JUDGED, None))
    assert "the price" == list(review.paragraphs(news, JUDGED, "the price"))[-1]


@pytest.mark.parametrize(
    ("values", "flag", "expected"),
    [
        ({}, ON, [said("promoted_by", **WHOSE), said("flag_on", state="probation", changed=False)]),
        ({"by_human": True, "transition": GONE}, replace(ON, state="stale"),
         [said("by_hand_after", **WHOSE), "gone", said("flag_on", state="stale", changed=True)]),
        ({"transition": GONE}, STALE, [said("promoted_by", **WHOSE), "gone", said("flag_off")]),
    ],
)  # fmt: skip
def test_without_a_report_the_message_says_what_was_done_and_where_the_flag_stands(
    values, flag, expected
):
    news = review.ReviewNews(NAME, STAGE, Review(AT, "r1", "t1", "fast", **values), flag)

    assert expected == list(review.paragraphs(news, None, None))


SAVED = Savings(runs=4, compared_runs=3, priced_runs=3, micro_usd=6_000_000, expected_usd=8.0)
CHANGES = (ChangeOfFlag(AT, "enable", "evaluate"), ChangeOfFlag(AT, "freeze", "human:ana"))
ASKED = WorkloadWeek("b", OWNER, "off", False, trial="t3", approval="t3", waited=2)
TRIED = WorkloadWeek("c", OWNER, "stale", True, {"x": 1}, trial="t4", canary="t4")
WEEKS = [
    WorkloadWeek("d", OWNER, "off", False),
    ASKED,
    WorkloadWeek("a", OWNER, "probation", True, "fast", {"fast": 2, "baseline": 1}, failed=1,
                 watched=2, changes=CHANGES, savings=SAVED),
    replace(TRIED, candidate=None, runs={"slow": 1, "baseline": 1}),
]  # fmt: skip


def week(weeks, unread=(), owner=OWNER):
    return digest(owner, weeks, unread, TimeWindow(AT - 7 * 86_400, AT), stage=STAGE)


def test_the_week_has_what_ran_what_was_saved_and_what_is_open_as_text_and_figures():
    message = week(WEEKS)
    changes = [{"at": AT, "action": one.action, "by": one.by} for one in CHANGES]

    assert [
        "5 production runs of 2 workloads: 2 baseline, 3 with a candidate; 1 failed; "
        "2 waited for capacity.",
        "Saved so far by promoted candidates: $6.00 over 3 runs; the trials had expected $8.00 "
        "(75% of it).",
        "Waits for approval: b", "On probation: a (fast, 2 runs)",
        "In a trial: c (with canary runs)", "Changed since the proof: c",
        "Flag changed: a (enable, freeze)",
    ] == message.text.splitlines()[2:]  # fmt: skip
    assert {
        "since": "2026-09-14T14:13:20Z", "until": "2026-09-21T14:13:20Z", "workloads": 4,
        "runs": {"fast": 2, "baseline": 2, "slow": 1}, "failed": 1, "waited": 2, "saved_usd": 6.0,
        "priced_runs": 3, "expected_usd": 8.0, "active": [
            {"workload": "a", "owner": OWNER, "state": "probation", "enabled": True,
             "candidate": "fast", "runs": {"fast": 2, "baseline": 1}, "failed": 1, "watched": 2,
             "changes": changes, "savings": SAVED.to_dict()},
            {"workload": "b", "owner": OWNER, "state": "off", "waited": 2, "trial": "t3",
             "approval": "t3"},
            {"workload": "c", "owner": OWNER, "state": "stale", "enabled": True,
             "runs": {"slow": 1, "baseline": 1}, "trial": "t4", "canary": "t4"},
        ], "active_left_out": 0, "unread": [], "unread_left_out": 0,
    } == json.loads(json.dumps(message.figures))  # fmt: skip
    assert (f"compilegate digest --owner {OWNER} --stage {STAGE}", OWNER) == (
        message.act, message.owner,
    )  # fmt: skip
    assert f"compilegate digest --stage {STAGE}" == week([], owner=None).act
    assert "workloads without an owner: 0 production runs" in week([], owner=None).subject


@pytest.mark.parametrize(
    ("savings", "saved", "expected"),
    [
        ([], None, None),
        ([Savings(runs=1)], None, None),
        ([SAVED, SAVED], 12.0, 16.0),
        ([SAVED, replace(SAVED, expected_usd=None)], 12.0, None),
        ([SAVED, Savings(expected_usd=9.0)], 6.0, 8.0),
        ([replace(SAVED, expected_usd=0.0)], 6.0, 0.0),
        ([replace(SAVED, micro_usd=0)], 0.0, 8.0),
    ],
)
def test_savings_are_compared_only_where_every_trial_had_an_estimate(savings, saved, expected):
    weeks = [replace(ASKED, workload=str(n), savings=one) for n, one in enumerate(savings)]
    message = week([*weeks, ASKED])

    assert (saved, expected) == (message.figures["saved_usd"], message.figures["expected_usd"])
    assert bool(expected) is ("had expected" in message.text)
    assert (saved is not None) is ("Saved so far" in message.text)


def test_names_and_figures_of_very_many_workloads_are_cut():
    names = [f"w{n:03}" for n in range(103)]
    message = week([replace(ASKED, workload=name) for name in names[:102]], names)

    eight = ", ".join(names[:8])
    assert f"Waits for approval: {eight} and 94 more" in message.text
    assert f"weekly-digest says why): {eight} and 95 more" in message.text
    assert f"why): {eight}\n" in week([ASKED], names[:8]).text
    assert (names[:100], names[:100]) == (
        [one["workload"] for one in message.figures["active"]], message.figures["unread"],
    )  # fmt: skip
    assert (2, 3) == (message.figures["active_left_out"], message.figures["unread_left_out"])


@pytest.mark.parametrize(
    ("weeks", "unread", "quiet"),
    [([], [], True), (WEEKS[:1], [], True), (WEEKS[:1], ["x"], False), (WEEKS[:2], [], False)],
)
def test_a_week_is_quiet_if_nothing_happened_and_all_could_be_read(weeks, unread, quiet):
    assert quiet is is_quiet(weeks, unread)
    assert quiet is ("Nothing ran and nothing changed" in week(weeks, unread).text)


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
