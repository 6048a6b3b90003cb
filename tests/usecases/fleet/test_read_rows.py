"""The fleet as its rows say it, from the ledgers where some are missing, and what is neither."""

from __future__ import annotations

import pytest

from compilegate.domain.fleet.row import UNREADABLE, Row
from compilegate.domain.records.trials import TrialFailed
from compilegate.ports import Services
from compilegate.usecases.fleet.project import Fleet, read_fleet
from tests.fakes import MemoryFleet, services

DAMAGED, NEWER = "{", '{"schema": 99, "fold": 1}'


@pytest.fixture
def stage() -> Services:
    """Rows of a and c, damaged ones of b and e, a newer release's of d; g and h have none.

    Of f there is a row that covers nothing, i was only uploaded, no ledger of h can be read.
    """
    made = services()
    fleet = made.fleet.raw
    assert isinstance(fleet, MemoryFleet)
    for name in "abcdefghi":
        made.store.put(f"workloads/{name}/specs/1.json", b"{}")
    for name in "ca":
        made.fleet.put(Row(workload=name, upto={"flag": "flag#1"}), "")
    made.fleet.put(Row(workload="f"), "")
    fleet.texts |= {("fleet", "b"): DAMAGED, ("fleet", "e"): DAMAGED, ("fleet", "d"): NEWER}
    for name in "bge":
        made.ledger.append(name, TrialFailed(5, "0mabc123", reason="x", error="y"))
    made.ledger.raw.put_once("h", "flag#1", ["no entry"])  # type: ignore[arg-type]
    return made


def test_what_has_no_readable_row_is_folded_and_a_newer_releases_left_alone(
    stage: Services,
) -> None:
    fleet = read_fleet(stage)

    assert ["a", "b", "c", "e", "g", "h"] == [row.workload for row in fleet.rows]
    assert ((), ("d",)) == (fleet.building, fleet.unread)
    assert [*"abcdegh"] == fleet.names
    assert [UNREADABLE] == [need.code for need in fleet.rows[-1].needs]


def test_a_stage_without_workloads_has_none() -> None:
    assert Fleet() == read_fleet(services())
