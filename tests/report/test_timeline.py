"""What each record of the ledger becomes in the timeline: title, tone and name in the charts."""

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.records.flags import Author, FlagVersion
from compilegate.domain.records.production import (
    CanaryClosed,
    CapacityWait,
    IgnoredJob,
    RegistrationChange,
)
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    TrialDecided,
    TrialFailed,
)
from compilegate.report.history.render import headline
from compilegate.report.history.timeline import timeline
from compilegate.report.history.view import FAULT_VARIABLE
from tests.domain.production.run_builder import BEGIN
from tests.report.histories import view_of

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
        (changed("stale", to=OFF), "Changed since the proof", "open", "stale", "is off."),
        (changed("of_later"), "Of_later: fast", "", None, "because."),
        (changed("set", "human:ana"), "Turned on by hand: fast", "open", "ana: set",
         "by ana: because."),
        (changed("revert", overrode=Author("human:bo", AT, "freeze.")),
         "Turned off automatically: fast", "bad", "off",
         "because. This replaces the change by bo: “freeze”."),
        (TrialFailed(AT, "t1", reason="lost"), "Trial t1 failed", "bad", None, "lost"),
        (TrialDecided(AT, "t1", "promote", reasons=("a.", "b")),
         "Trial t1 decided: turn it on", "good", None, "a; b."),
        (ApprovalRequested(AT, AT + 9, "t1", candidate="fast"), "Waits for approval", "open", None,
         "“fast” takes effect"),
        (ApprovalAnswer(AT, "t1", "human:ana", True, "fine"), "Approved", "", "approved",
         "by ana: fine"),
        (CanaryClosed(AT, "t1", 1, "complete"), "Canary runs end", "", None, "have their results."),
        (CanaryClosed(AT, "t1", 1, "of_later"), "Canary runs end", "open", None, "of_later."),
        (CapacityWait(AT, "r1", 1, "j", "fast", "none left", wait_seconds=60),
         "Waits for machines", "open", None, "run r1, fast: none left; tries again in 60"),
        (RegistrationChange(1, True, AT, "human:ana", document={"schedule": "daily"}),
         "Registered", "", None, "by ana; schedule daily"),
        (RegistrationChange(2, True, AT, "human:ana", ({"field": "a"}, {"field": "b"})),
         "Registered again", "", None, "by ana; changed: a, b"),
        (RegistrationChange(2, True, AT, "human:ana", (FAULT,)), "Fault injected on purpose", "bad",
         "fault injected", "with lr (training.environment, registered by ana)"),
        (RegistrationChange(2, True, AT, "human:ana", ({**FAULT, "after": None},)),
         "Injected fault removed", "", None, "by ana"),
        (RegistrationChange(3, False, AT, "human:ana"), "Retired from production", "off", "retired",
         "by ana; history"),
        (IgnoredJob(AT, "nightly", "arn:etl", "job_of_another_role"), "A job did not count",
         "open", None, "nightly ran as arn:etl. "),
    ],
)  # fmt: skip
def test_a_record_has_its_line(record, title, tone, mark, words):
    line = event(record)

    assert (title, tone, mark, float(AT)) == (line.title, line.tone, line.mark, line.at)
    assert words in line.text


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (changed("stale", to=Flag(True, "stale", "fast")), "“fast” is still on"),
        (changed("stale", to=Flag(False, "stale", "fast")), "“fast” is off until a new trial"),
        (changed("permanent", to=Flag(True, "permanent", "fast")), "on permanently: because"),
        (changed("disable", to=OFF), "without a compiler: because"),
        (changed("set", "human:ana"), "ana turned “fast” on by hand: because"),
    ],
)  # fmt: skip
def test_the_headline_is_where_the_flag_stands(version, words):
    assert words in headline(view_of([], version.to_entry()))
