"""The history is a fold: what it says does not depend on how its entries came."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.errors import InvalidInputError, UnreadableRecordError
from compilegate.domain.flag import OFF, Flag
from compilegate.domain.production.history import (
    Approval,
    answer_words,
    check_answer,
    history,
    standing_promotion,
)
from compilegate.domain.records import RESTORE, ledger
from compilegate.domain.records.flags import FlagVersion
from compilegate.domain.records.ledger import UnknownRecord
from compilegate.domain.records.production import (
    BegunRun,
    CanaryClosed,
    CanaryRound,
    CanaryToken,
    CapacityWait,
    ProbationEnd,
    ProductionRun,
    RegistrationChange,
    Review,
)
from compilegate.domain.records.trials import (
    ApprovalAnswer,
    ApprovalRequested,
    ApprovalToken,
    TrialFailed,
    TrialStarted,
)

# Ledgers as they are stored from release 0.2.0 on, by sort key; one workload each.
LEDGERS: Mapping[str, Mapping[str, Any]] = json.loads(
    (Path(__file__).parent / "ledger.json").read_text()
)
ENTRIES = [entry for entries in LEDGERS.values() for entry in entries.values()]


@pytest.mark.parametrize(
    ("key", "entry"),
    [pair for entries in LEDGERS.values() for pair in entries.items()],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_entry_is_read_and_written_alike(key, entry):
    record = ledger.read(entry)

    assert not isinstance(record, UnknownRecord)
    assert (entry, key) == (json.loads(json.dumps(record.to_entry())), record.key)


@given(st.sampled_from(sorted(LEDGERS)), st.randoms(), st.integers(0, 5))
def test_neither_order_nor_repetition_changes_the_history(name, chance, repeated):
    entries = list(LEDGERS[name].values())
    mixed = [*entries, *entries[:repeated]]
    chance.shuffle(mixed)

    assert history(entries) == history(mixed)


def test_what_is_of_one_run_trial_or_execution_is_in_the_order_of_time():
    begun = [BegunRun(1, f"r{n}", f"e{n}", "a", "flag", 1, n, "s", "s") for n in (2, 1)]
    waits = [CapacityWait(3 - n, f"r{n}", 0, "j") for n in (2, 1)]
    reviews = [Review(at, run, trial) for at, run, trial in
               ((5, "b", "t"), (5, "a", "t"), (4, "c", "t"), (5, "d", "x"))]  # fmt: skip
    starts = (("b", "j0", 5), ("a", "j2", 5), ("a", "j1", 5), ("z", "j", 4))
    runs = [
        ProductionRun(run, job, "a", start, 9, {}, True, "flag", at=at)
        for at, (run, job, start) in enumerate(starts)
    ]
    asked = [ApprovalRequested(3, 9, trial) for trial in ("t2", "t1")]
    tokens = [ApprovalToken(n, trial, n, f"{trial}{n}") for trial in ("t1", "t2") for n in (2, 1)]
    answer = ApprovalAnswer(5, "t1", "human:ana", approved=True, reason="good")
    started = [TrialStarted(at, f"arn:aws:states:r:1:execution:m:w-{trial}")
               for at, trial in ((3, "0mabc125"), (2, "0mabc124"), (1, "0mabc123"))]  # fmt: skip
    failed, rounds = (
        TrialFailed(4, "0mabc124"),
        [
            CanaryRound(trial, n, (), {}, "j", 9, 60, hold=True)
            for trial, n in (("t", 2), ("t", 1), ("x", 1))
        ],
    )
    closed, ended = (
        CanaryClosed(5, "t", 1, "lost"),
        ProbationEnd(5, "t", "a", "d", None, None, "revert", "c", "1", ()),
    )
    token = CanaryToken(6, "t", 2, 1, "own")
    records = (*begun, *waits, *reviews, *runs, *asked, *tokens, answer, *started, failed, *rounds,
               closed, ended, token)  # fmt: skip
    past = history([one.to_entry() for one in records], since=3.0)

    assert (3.0, -math.inf) == (past.since, history([]).since)
    assert ((ended,), (failed,), tuple(waits)) == (
        past.probation_ends,
        past.failed,
        past.waits,
    )
    assert (started[2], started[0]) == past.open_trials
    assert ["t2"] == [one.trial for one in past.open_approvals]
    assert [1, 2] == [one.round for one in past.rounds_of("t")]
    assert [(2, ("own",))] == [(one.round, one.tokens) for one in past.open_rounds_of("t")]
    assert [*begun[::-1], None] == [past.begun_run(f"r{n}") for n in (1, 2, 3)]
    assert [*begun[::-1], None] == [past.run_of_execution(f"e{n}") for n in (1, 2, 3)]
    assert (begun[1], begun[0]) == past.begun
    assert (waits[0],) == past.waits_of("r2")
    assert (reviews[1], None) == (past.review_of("a"), past.review_of("x"))
    assert (reviews[2], reviews[1], reviews[0], reviews[3]) == past.reviews
    assert (reviews[1], reviews[0]) == past.reviews_of("t", since=5)
    assert (runs[3], runs[2], runs[1], runs[0]) == past.runs
    assert (
        Approval(asked[1], ("t11", "t12"), answer), Approval(asked[0], ("t21", "t22"))
    ) == past.approvals  # fmt: skip


def test_a_round_has_what_later_entries_say_of_it():
    (first, second) = history(LEDGERS["canary"].values()).rounds

    assert ("complete", "complete") == (first.closed, second.closed)
    assert (True, 1) == (first.reported, len(first.tokens))


@pytest.mark.parametrize(
    ("active", "retired"),
    [([], False), ([True], False), ([True, False], True), ([True, False, True], False)],
)
def test_a_workload_is_retired_by_its_latest_registration(active, retired):
    changes = [
        RegistrationChange(revision, is_active, at=revision, document={"workload": "w"}).to_entry()
        for revision, is_active in enumerate(active, start=1)
    ]

    assert retired == history(changes[::-1]).is_retired


def test_an_entry_of_a_later_release_is_kept_and_changes_nothing_else():
    later = {"kind": "moved", "at": 5, "place": {"region": "eu"}}
    before = history(LEDGERS["reverted"].values())
    after = history([*LEDGERS["reverted"].values(), later])

    assert later in [record.to_entry() for record in after.records]
    assert (before.flags, before.runs, before.reviews) == (after.flags, after.runs, after.reviews)


# A damaged entry is named and kept; the others are read, but nothing is guessed.


ONE_OF_EACH = {entry["kind"]: entry for entry in ENTRIES}
WRONG = [None, "x", [], 10**400, float("nan"), 1e300]
OTHERS = list(ONE_OF_EACH.values())


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_an_entry_with_one_key_lost_or_wrong_is_read_or_named(kind):
    entry = ONE_OF_EACH[kind]
    for key in entry.keys() - {"kind"}:
        lost = {name: value for name, value in entry.items() if name != key}
        for damaged in (lost, *({**entry, key: value} for value in WRONG)):
            past = history([*OTHERS, damaged])
            assert len(past.records) >= len(OTHERS)
            for record in past.damaged:
                assert repr(kind) in record.problem
                assert len(record.problem) < 1500


@pytest.mark.parametrize("change", [{"to": "{"}, {"version": "x"}, {"to": None}, {"by": 5}])
def test_a_flag_is_not_taken_from_an_earlier_version_than_the_damaged_one(change):
    flag = ONE_OF_EACH["flag"]
    past = history([flag, {**flag, "version": flag["version"] + 1, **change}])

    with pytest.raises(UnreadableRecordError, match="'flag'") as raised:
        past.flag  # noqa: B018
    assert RESTORE == raised.value.fix
    assert OFF == history([]).flag
    assert (
        ON
        == history([entry(n, one).to_entry() for n, one in ((3, ON), (2, KEPT), (1, OTHER))]).flag
    )


# Answers to a question for approval, and those that contradict.


YES = ApprovalAnswer(3, "t1", "human:ana", approved=True, reason="looks good")
NO = replace(YES, approved=False, reason="not before the release")


@pytest.mark.parametrize(
    ("answer", "command"), [(YES, "flag revert bert-docs"), (NO, "flag set bert-docs")]
)
def test_the_other_answer_is_refused_with_the_command_that_overrides_it(answer, command):
    with pytest.raises(InvalidInputError) as refused:
        check_answer(answer, approved=not answer.approved, workload="bert-docs", stage="prod")

    assert answer_words(answer) in str(refused.value)
    assert answer.reason in str(refused.value)
    assert command in str(refused.value)


def test_an_answer_names_the_person():
    assert ("approved by ana", "not approved by ana") == (answer_words(YES), answer_words(NO))


# Which promotion a flag stands for.

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile"}, "d1")
KEPT = Flag(True, "permanent", "compile", {"compiler": "torch_compile"}, "d2")
OTHER = Flag(True, "probation", "fp8", {"precision": "fp8"}, "d3")


def entry(at: int, flag: Flag, by: str = "evaluate", trial: str | None = "abcd1234") -> Any:
    details = {"trial": trial} if trial else {}
    return FlagVersion(at, at, f"c{at}", by, "a", "r", flag.to_json(), details=details)


PROMOTED = entry(1, ON)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [PROMOTED, entry(2, Flag(False, "reverted", "compile"), "train")],
        [PROMOTED, entry(2, OTHER, "human:ann", None)],
        [PROMOTED, entry(2, replace(ON, enabled=False, state="stale"), "train")],
        [entry(1, Flag(True, "permanent"))], [entry(1, ON, "human:ann", None)],
    ],
    ids=[
        "never on",  "reverted",  "another by hand", "stale",
        "without a candidate", "only by hand",
    ],
)  # fmt: skip
def test_what_is_off_or_no_trial_proved_is_no_promotion(history):
    assert None is standing_promotion(history)


@pytest.mark.parametrize(
    ("history", "trial", "candidate", "at", "since", "by_human"),
    [
        ([PROMOTED, entry(5, KEPT, "train"), entry(7, KEPT, "train")],
         "abcd1234", "compile", 1, 5, False),
        ([PROMOTED, entry(4, OTHER, trial="newer123")], "newer123", "fp8", 4, 1, False),
        ([PROMOTED, entry(2, OFF, "human:ann", None), entry(3, ON, "human:ann")],
         "abcd1234", "compile", 3, 3, True),
        ([PROMOTED, entry(2, replace(ON, enabled=False, state="stale")), entry(3, ON, "train")],
         "abcd1234", "compile", 1, 3, False),
    ],
    ids=[
        "changed by the review", "a later trial's", "turned on by a person",
        "resumed by the review",
    ],
)  # fmt: skip
def test_a_promotion_is_of_the_trial_that_measured_it(
    history, trial, candidate, at, since, *, by_human
):
    promotion = standing_promotion(history)

    assert (trial, candidate, at, since, by_human, len(history)) == (
        promotion.trial, promotion.candidate, promotion.at, promotion.since, promotion.by_human,
        promotion.version,
    )  # fmt: skip
