"""The equivalence check's table in evidence: what is shipped, less what a deployment revoked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import UnreadableRecordError
from compilegate.domain.flag_change import Override
from compilegate.domain.ledger_keys import DEPLOYMENT
from compilegate.domain.records.ledger import ClassRestored, ClassRevoked
from compilegate.domain.trial.evidence import read_records
from compilegate.usecases.equivalence import (
    UNREADABLE,
    restore_classes,
    revoked_classes,
    table_of,
)
from compilegate.usecases.records import to_json
from tests.domain.evidence_builder import BASE_WALL, CENTRE
from tests.domain.test_equivalence import FIRST, LAST, UNSEEN, figures
from tests.domain.test_equivalence import TABLE as FAULTS
from tests.usecases.equivalence_table import COUNTS, CPU, GPU, TABLE, shipped
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    entries,
    follow,
    promote,
    watch,
)
from tests.usecases.trial_builder import TRIAL, asks_full_runs, call_judge, evidence, first_round

FIFTH = "1970-01-01T00:00:05Z"
WHY = Override("ana", "the data was truncated")


@pytest.fixture(autouse=True)
def _shipped() -> Iterator[None]:
    with shipped(TABLE):
        yield


def revoke(services: Any, decision_id: str, workload: str, at: int = 5) -> ClassRevoked:
    record = ClassRevoked(at, decision_id, workload, ", ".join(GPU.values()), "worse")
    services.ledger.append(DEPLOYMENT, record)
    return record


def test_evidence_has_the_shipped_table_and_when_a_class_was_revoked(services: Any) -> None:
    """A restoration that cannot be read restores nothing."""
    revoke(services, "d2", "ads", at=7)
    revoke(services, "d1", "lm", at=5)
    services.ledger.raw.put_once(
        DEPLOYMENT, "equivalence#d1#restored", {"kind": ClassRestored.kind}
    )

    assert table_of(services.ledger, "ml.g5.xlarge") == {
        "check": TABLE["check"], "bounds": TABLE["bounds"], "shares": TABLE["shares"],
        "device": "cuda 8.6",
        "classes": [{**CPU, **COUNTS, "revoked_at": None}, {**GPU, **COUNTS, "revoked_at": FIFTH}],
    }  # fmt: skip


def test_no_table_and_a_revocation_that_cannot_be_read_leave_no_class_in_use(
    services: Any,
) -> None:
    services.ledger.raw.put_once(DEPLOYMENT, "equivalence#d0", {"kind": "equivalence_revoked"})
    table = table_of(services.ledger, "ml.g5.xlarge")
    assert table is not None
    assert TABLE["bounds"] == table["bounds"]
    assert [UNREADABLE, UNREADABLE] == [one["revoked_at"] for one in table["classes"]]
    with pytest.raises(UnreadableRecordError):
        revoked_classes(services.ledger)

    with shipped({**TABLE, "bounds": {}}):
        assert table_of(type(services.ledger)(type(services.ledger.raw)()), "") is None


def test_each_round_judges_by_the_table_as_it_stands_and_records_it(services: Any) -> None:
    first_round(services)
    before = evidence(services)["equivalence"]
    revoke(services, "d1", "lm")
    call_judge(services, 1, [], asks_full_runs("compile 17"))
    after = evidence(services)["equivalence"]

    assert after == read_records(evidence(services)).equivalence  # for looks within the round
    assert [None, None] == [one["revoked_at"] for one in before["classes"]]
    assert [None, FIFTH] == [one["revoked_at"] for one in after["classes"]]


def promote_examined(services: Any, last: Any) -> None:
    """A promotion whose trial checked the arm: at the first weights, and as this at the last."""
    promote(services)
    key = naming.record_key(WORKLOAD, TRIAL, "evidence")
    document = json.loads(services.store.get(key)) | {"equivalence": FAULTS}
    for run in document["arms"][1]["runs"]:
        run["equivalence"] = FIRST if run["stage"] == "speed" else last
    services.store.put(key, to_json(document))


@pytest.mark.parametrize(
    ("last", "wrong", "revoked"),
    [
        (LAST, {"metric": CENTRE - TWO_MARGINS}, True),
        (LAST, {"finished": False, "metric": None}, True),
        (LAST, {"wall_seconds": BASE_WALL}, False),
        (None, {"metric": CENTRE - TWO_MARGINS}, False),
        (figures("last", unseen=[UNSEEN]), {"metric": CENTRE - TWO_MARGINS}, False),
    ],
    ids=["worse", "crashes", "only slower", "never examined", "not passed"],
)
def test_a_confirmed_loss_of_an_arm_that_passed_revokes_its_class(
    services: Any, last: Any, wrong: Any, *, revoked: bool
) -> None:
    promote_examined(services, last)
    answer = follow(services, range(1, 40), **wrong)
    assert "revert" == answer["verdict"]

    job_class = "pytorch 2.13, cpu, bf16"
    marks = revoked_classes(services.ledger)
    assert [(WORKLOAD, job_class)] * revoked == [(one.workload, one.job_class) for one in marks]
    assert revoked is (job_class in answer["message"])
    assert revoked is ("compilegate unlock" in answer["message"])
    restore_classes(marks, WHY, services)
    watch(services, entries(services)[-1]["run"])  # the review once more
    assert [] == revoked_classes(services.ledger)
