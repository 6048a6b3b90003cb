"""A damaged entry of the ledger is named and kept; the others are read, but nothing is guessed."""

from __future__ import annotations

import pytest

from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.production.history import history
from compilegate.domain.records import RESTORE, ledger
from compilegate.domain.records.ledger import DamagedRecord
from compilegate.domain.records.production import Review
from tests.domain.production.test_history import ENTRIES

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


def test_the_run_that_cannot_be_read_is_missing_and_the_others_are_there():
    run = {**ONE_OF_EACH["run"], "at": 5}
    damaged = {key: value for key, value in run.items() if key != "arm"}
    past = history([run, damaged])

    assert (1, [True]) == (
        len(past.runs),
        ["arm is missing" in one.problem for one in past.damaged],
    )
    assert damaged == past.damaged[0].to_entry()


@pytest.mark.parametrize("change", [{"to": "{"}, {"version": "x"}, {"to": None}, {"by": 5}])
def test_a_flag_is_not_taken_from_an_earlier_version_than_the_damaged_one(change):
    flag = ONE_OF_EACH["flag"]
    past = history([flag, {**flag, "version": flag["version"] + 1, **change}])

    with pytest.raises(UnreadableRecordError, match="'flag'") as raised:
        past.flag  # noqa: B018
    assert RESTORE == raised.value.fix


def test_a_record_read_for_itself_says_what_is_wrong():
    with pytest.raises(UnreadableRecordError, match=r"kind 'review'.*damaged.*Fix: "):
        Review.from_entry({"kind": "review", "at": 5})
    assert isinstance(ledger.read({"kind": "review"}), DamagedRecord)
