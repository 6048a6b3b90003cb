"""The day's figures as metrics that CloudWatch reads out of the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from compilegate.domain import metrics
from compilegate.usecases.operations.metrics import measure_day
from tests.fakes import services
from tests.usecases.production_ledger import NOW, decided, ran, register, write


@pytest.fixture
def cloud() -> Any:
    found = services()
    for name in ("one", "two"):
        register(found, name, None)
        ran(found, name, NOW - 60, "baseline", usd=10.0)
        write(found, name, decided("a", NOW - 60, spent_usd=2))
    return found


def written(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if hasattr(record, "_aws")]


def test_figures_of_all_workloads_are_summed(cloud: Any, caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        measure_day(services=cloud)

    record, decisions = written(caplog)
    assert (2, 20.0, 4.0) == (record.ProductionRuns, record.ProductionUsd, record.TrialUsd)
    (directive,) = record._aws["CloudWatchMetrics"]
    assert [[metrics.STAGE]] == directive["Dimensions"]
    units = {item["Name"]: item["Unit"] for item in directive["Metrics"]}
    assert ("Count", "None") == (units[metrics.FLAGS_ON], units[metrics.SAVED_USD])
    assert all(hasattr(record, name) for name in units)
    assert ("promote", 2) == (decisions.Verdict, decisions.Decisions)
    (directive,) = decisions._aws["CloudWatchMetrics"]
    assert [[metrics.STAGE, metrics.VERDICT]] == directive["Dimensions"]


def test_a_workload_that_cannot_be_read_does_not_hide_the_others(cloud: Any, caplog: Any) -> None:
    cloud.ledger.put_once("one", "trial#b#decision", {"kind": "decision", "at": NOW - 60})
    with caplog.at_level(logging.INFO):
        total = measure_day(services=cloud)

    assert {"promote": 1} == total.decisions
    assert "one: its day cannot be read" in caplog.text
