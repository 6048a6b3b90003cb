"""The equivalence check's table in evidence: what is shipped, less what a deployment revoked."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError, UnreadableRecordError
from compilegate.domain.flag_change import Override
from compilegate.domain.ledger_keys import DEPLOYMENT
from compilegate.domain.records.ledger import ClassRevoked
from compilegate.usecases.equivalence import (
    restore_classes,
    revoked_by,
    revoked_classes,
    table_of,
)
from tests.usecases.equivalence_table import COUNTS, CPU, GPU, TABLE, ship
from tests.usecases.trial_builder import asks_full_runs, call_judge, evidence, first_round

FIFTH = "1970-01-01T00:00:05Z"
WHY = Override("ana", "the data was truncated")


@pytest.fixture(autouse=True)
def _shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    ship(monkeypatch, TABLE)


def revoke(services: Any, decision_id: str, workload: str, at: int = 5) -> ClassRevoked:
    record = ClassRevoked(at, decision_id, workload, ", ".join(GPU.values()), "worse")
    services.ledger.append(DEPLOYMENT, record)
    return record


def test_evidence_has_the_shipped_table_and_when_a_class_was_revoked(services: Any) -> None:
    revoke(services, "d2", "ads", at=7)
    revoke(services, "d1", "lm", at=5)

    assert table_of(services.ledger) == {
        "check": TABLE["check"], "bounds": TABLE["bounds"], "shares": TABLE["shares"],
        "classes": [{**CPU, **COUNTS, "revoked_at": None}, {**GPU, **COUNTS, "revoked_at": FIFTH}],
    }  # fmt: skip


def test_no_table_and_a_revocation_that_cannot_be_read_leave_no_class(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.ledger.raw.put_once(DEPLOYMENT, "equivalence#d0", {"kind": "equivalence_revoked"})
    assert table_of(services.ledger) is None
    with pytest.raises(UnreadableRecordError):
        revoked_classes(services.ledger)

    ship(monkeypatch, {**TABLE, "classes": []})
    assert table_of(type(services.ledger)(type(services.ledger.raw)())) is None


def test_each_round_judges_by_the_table_as_it_stands_and_records_it(services: Any) -> None:
    first_round(services)
    before = evidence(services)["equivalence"]
    revoke(services, "d1", "lm")
    call_judge(services, 1, [], asks_full_runs("compile 17"))
    after = evidence(services)["equivalence"]

    assert [None, None] == [one["revoked_at"] for one in before["classes"]]
    assert [None, FIFTH] == [one["revoked_at"] for one in after["classes"]]


def test_a_class_counts_again_when_no_workloads_alarm_revokes_it(services: Any) -> None:
    first, second, other = (
        revoke(services, *one) for one in (("d1", "lm"), ("d2", "lm"), ("d3", "ads"))
    )
    assert [first, second] == revoked_by("lm", services)

    restore_classes([first, second], WHY, services)
    assert [other] == revoked_classes(services.ledger)
    restore_classes([other], WHY, services)

    table = table_of(services.ledger)
    assert table is not None
    assert [None, None] == [one["revoked_at"] for one in table["classes"]]
    entry = services.ledger.raw.entries(DEPLOYMENT, "equivalence#d1#restored")[0]
    assert ("human:ana", WHY.reason) == (entry["by"], entry["reason"])
    with pytest.raises(InvalidInputError, match="lm"):
        revoked_by("lm", services)
