"""Every kind of message: its text as a snapshot, its kind, owner and figures as values.

python -m tests.report.test_notifications    writes the snapshot anew
"""

from pathlib import Path

from compilegate.domain.claims import decision_notification
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.flag import Flag
from compilegate.domain.production.summaries import TimeWindow, WorkloadWeek
from compilegate.domain.reasons import Reason
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import (
    TEAM,
    CapacityWait,
    PlannedTransition,
    ProductionRun,
    Review,
)
from compilegate.domain.records.trials import ApprovalRequested
from compilegate.report.notifications import review
from compilegate.report.notifications.approval import approval_needed
from compilegate.report.notifications.production import attempt_message, flag_changed, swept
from compilegate.report.notifications.weekly_digest import digest
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


def _approval():
    request = ApprovalRequested(AT, AT + 86_400, "t1", "e", "d1", "k", "compile")
    decision = read(Decision, samples.promote()["decision"])
    return approval_needed(decision, request, workload=NAME, trial="t1", owner=OWNER, stage=STAGE)


def changed(why="Code freeze"):
    version = FlagVersion(7, AT, "c", "human:ana", "human", why, ON.to_json(), parameter="/flag")
    return flag_changed(NAME, version, owner=OWNER, stage=STAGE)


def failed(why="CUDA out of memory"):
    run = ProductionRun(
        run="r1", job="j1", arm="compile", started_at=AT, ended_at=AT + 60, counts=True,
        result={"finished": False}, why="flag", status="Failed", reason=why,
    )  # fmt: skip
    return attempt_message(run, NAME, owner=OWNER, stage=STAGE)


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


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
