"""What a row says needs a person, since when, and what its trial does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from compilegate.domain.flag import Flag
from compilegate.domain.fleet.row import NEEDS, PHASES, Need, Row
from compilegate.domain.production.history import history
from compilegate.domain.records import LedgerRecord
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.production import (
    TEAM,
    TRAIN,
    CanaryClosed,
    CanaryRound,
    RegistrationChange,
)
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    TrialDecided,
    TrialFailed,
    TrialStarted,
)
from tests.domain.fleet.ledgers import BEGIN, DAY, EXECUTION, Damaged
from tests.domain.fleet.test_fold import fold
from tests.domain.production.run_builder import production_run

NOW = BEGIN + 90 * DAY
GRACE = 3600
ASKED = ApprovalRequested(50, 500, "t1")
ASKED_LATER = ApprovalRequested(55, 500, "t2")
ANSWER = ApprovalAnswer(60, "t1", "human:ana", approved=True)


def row(*records: LedgerRecord, lock: str | None = None) -> Row:
    """The row of a workload that is registered for three runs a week."""
    entries = [record.to_entry() for record in records]
    return fold(Row("w"), history(entries), NOW, lock=lock)


def flag(version: int, at: int, state: str, candidate: str = "compile") -> FlagVersion:
    enabled = state in ("probation", "permanent")
    to = Flag(enabled, state, candidate).to_json()
    return FlagVersion(version, at, f"c{version}", "train", "change", "why", to)


def opened(at: int) -> CanaryRound:
    return CanaryRound("t1", 1, (), {}, "job", at, 60, False, at)


@dataclass(frozen=True)
class DamagedFlag(LedgerRecord):
    """A change of the flag that does not say what it changed."""

    kind = "flag"
    key_form = "flag#00000001"

    at: int


STARTED = TrialStarted(10, EXECUTION.format("t1"))
DECIDED = TrialDecided(40, "t1", "promote")
CLOSED = CanaryClosed(30, "t1", 1, "complete")
HELD = EXECUTION.format("t1")


@pytest.mark.parametrize(
    ("records", "lock", "phase"),
    [
        ([], None, ("none", None, None)),
        ([STARTED], HELD, ("measuring", "t1", 10)),
        ([TrialStarted(5, EXECUTION.format("t0")), STARTED], HELD, ("measuring", "t1", 10)),
        ([STARTED, opened(20)], HELD, ("canary", "t1", 20)),
        ([STARTED, opened(20), CLOSED], HELD, ("measuring", "t1", 10)),
        ([STARTED, DECIDED], HELD, ("applying", "t1", 40)),
        ([STARTED, DECIDED, ASKED], HELD, ("approval", "t1", 50)),
        ([ASKED, ASKED_LATER], None, ("approval", "t2", 55)),
        ([STARTED, DECIDED, ASKED, ANSWER], HELD, ("applying", "t1", 40)),
        ([STARTED, TrialFailed(40, "t1")], HELD, ("none", None, None)),
        ([TrialStarted(10, "by-hand", trial="t1"), DECIDED], "by-hand", ("applying", "t1", 40)),
    ],
)
def test_the_phase_is_that_of_the_open_trial(records, lock, phase):
    found = row(*records, lock=lock)

    assert phase == (found.phase, found.trial, found.phase_since)
    assert found.phase in PHASES


def run(number: int, arm: str, **changed: Any) -> LedgerRecord:
    """By a team's own pipeline, which may or may not read the flag."""
    return production_run(number, arm, **{"launched_by": TEAM, **changed})


BASE = run(1, "baseline")
ENDED = BEGIN + DAY + 21_600  # when BASE did
FAILED_RUN = run(2, "compile", finished=False)
FAILED_AT = int(BEGIN + 2 * DAY + 15_800)
TWO_RUNS = round(2 * 7 * DAY / 3)  # of the schedule of three a week
ON = flag(1, BEGIN, "permanent")


@pytest.mark.parametrize(
    ("records", "lock", "needs"),
    [
        ([], None, []),
        # An answer that is due.
        ([ASKED], None, [("approve", 50)]),
        ([ASKED, ANSWER], None, []),
        ([ASKED, ASKED_LATER], None, [("approve", 55)]),
        # Entries that cannot be read, since the first; of the flag nothing is known then.
        ([DamagedFlag(70)], None, [("unreadable", 70)]),
        # The flag.
        ([flag(1, 20, "reverted")], None, [("reverted", 20)]),
        ([flag(1, 20, "stale")], None, [("stale", 20)]),
        ([flag(1, 20, "reverted"), flag(2, 30, "off")], None, []),
        ([flag(1, 20, "stale"), flag(2, 30, "stale")], None, [("stale", 20)]),
        ([flag(1, 20, "stale"), flag(2, 30, "stale", "p4d")], None, [("stale", 30)]),
        # One that is on: by whom it is followed, and what it is compared with.
        ([ON], None, [("not_read", BEGIN + TWO_RUNS), ("no_baseline", BEGIN + 60 * DAY)]),
        ([ON, run(1, "baseline", launched_by=TRAIN)], None, [
            ("not_read", ENDED + TWO_RUNS), ("no_baseline", ENDED + 60 * DAY),
        ]),
        ([ON, run(2, "compile")], None, [
            ("not_read", FAILED_AT + TWO_RUNS), ("no_baseline", BEGIN + 60 * DAY),
        ]),
        ([flag(1, BEGIN + 200 * DAY, "permanent"), BASE], None, [
            ("not_read", BEGIN + 200 * DAY + TWO_RUNS), ("no_baseline", BEGIN + 200 * DAY),
        ]),
        # The last run or trial.
        ([BASE, FAILED_RUN], None, [("failed", FAILED_AT)]),
        ([FAILED_RUN, run(3, "baseline")], None, []),
        ([STARTED, TrialFailed(40, "t1")], None, [("failed", 40)]),
        ([STARTED, TrialFailed(40, "t1", error="ABORTED")], None, []),
        ([STARTED, TrialFailed(40, "t1"), TrialDecided(41, "t2", "stay_off")], None, []),
        ([TrialFailed(40, "t0"), TrialStarted(41, HELD)], HELD, []),
        ([DECIDED, TrialFailed(45, "t1")], None, []),
        ([FAILED_RUN, TrialFailed(40, "t1")], None, [("failed", FAILED_AT)]),
        # A lock whose trial has ended.
        ([STARTED, DECIDED], HELD, [("lock_stays", 40 + GRACE)]),
        ([STARTED, DECIDED, ASKED], HELD, [("approve", 50)]),
        ([STARTED, DECIDED, ASKED, ANSWER], HELD, [("lock_stays", 60 + GRACE)]),
        ([STARTED, DECIDED, ASKED, ANSWER, ASKED_LATER, replace(ANSWER, at=90, trial="t2")], HELD,
         [("lock_stays", 60 + GRACE)]),
        ([STARTED, DECIDED], EXECUTION.format("t2"), []),
        ([FAILED_RUN, RegistrationChange(1, active=True, at=90)], None, [("failed", FAILED_AT)]),
        # Of a retired workload no more than what has to end.
        ([ON, ASKED, FAILED_RUN, RegistrationChange(1, active=False, at=90)], None, [
            ("approve", 50),
        ]),
        # The most urgent first.
        ([flag(1, 20, "stale"), ASKED, FAILED_RUN, Damaged(70), Damaged(75)], None, [
            ("approve", 50), ("unreadable", 70), ("stale", 20), ("failed", FAILED_AT),
        ]),
    ],
)  # fmt: skip
def test_what_needs_a_person_and_since_when(records, lock, needs):
    found = row(*records, lock=lock)

    assert [Need(*need) for need in needs] == [*found.needs]
    assert {need.code for need in found.needs} <= {*NEEDS}
    assert (found.unread > 0) is any(code == "unreadable" for code, _ in needs)
