"""The history page of real ledgers: what it holds in each state, and what it says of each event."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.records.trials import TrialDecided
from compilegate.report import statements
from compilegate.usecases.production.announce_review import history_page
from compilegate.usecases.records import to_json
from tests.domain.evidence_builder import CENTRE, judge
from tests.domain.production.run_builder import BEGIN
from tests.report.browser import CHROMIUM, assert_readable, browser, saved
from tests.usecases.production_builder import (
    TWO_MARGINS,
    WORKLOAD,
    follow,
    promote,
    record,
    run_and_watch,
    trial_evidence,
)
from tests.usecases.trial_builder import FLAG, TRIAL


def promoted(services: Any, count: int) -> None:
    """So many sound runs of a promotion, every sixth of them the baseline's."""
    promote(services)
    for number in range(1, 1 + count):
        run_and_watch(services, number, "compile" if number % 6 else "baseline")


def reverted(services: Any) -> None:
    """Promoted, six sound runs, then the candidate loses quality."""
    promoted(services, 6)
    follow(services, range(7, 40), metric=CENTRE - TWO_MARGINS)


def without_a_flag(services: Any) -> None:
    for number in range(1, 4):
        record(services, number, "baseline")


def page_of(services: Any) -> tuple[Any, Any]:
    """The page and its document."""
    page = history_page(WORKLOAD, services)
    return page, json.loads(page.json)


def decided(services: Any) -> None:
    """The records of the trial behind the promotion."""
    key = naming.record_key(WORKLOAD, TRIAL, "decision")
    services.store.put(key, to_json(judge(trial_evidence()).to_dict(FLAG)))
    services.ledger.append(WORKLOAD, TrialDecided(BEGIN, TRIAL, "promote", key, "d1", "compile"))


def test_history_and_report_of_a_revert_have_one_figure(services: Any) -> None:
    decided(services)
    reverted(services)
    (last,) = (one for one in services.ledger.history(WORKLOAD).reviews if one.action == "revert")
    figures = read(Decision, json.loads(services.store.get(str(last.decision_key)))).quality
    page, document = page_of(services)
    key = naming.probation_report_key(WORKLOAD, TRIAL, str(last.decision_id), "md")
    assert figures is not None
    delta = statements.delta(figures.delta)

    assert f"{statements.OF_ALL}{delta}" in services.store.get(key).decode()
    assert {delta} == {*re.findall(r"Δ [^ |<]*\d", page.html)}
    assert document["sums"]["quality"]["points"][-1][0] >= len(document["runs"]) - 1


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened")
@pytest.mark.parametrize(
    ("happens", "charts"),
    # Without a baseline run of production nothing can be priced.
    [(reverted, 4), (partial(promoted, count=4), 3), (without_a_flag, 2)],
)
def test_a_browser_draws_every_chart_readably_at_every_size(
    happens: Any, charts: int, services: Any, tmp_path: Path
) -> None:
    happens(services)
    page = saved(history_page(WORKLOAD, services), tmp_path)

    with browser(tmp_path / "profile") as chromium:
        assert_readable(chromium, page)
        assert charts == chromium.run("document.querySelectorAll('figure.chart').length")
