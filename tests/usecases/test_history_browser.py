"""The story's page in a real browser, without network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compilegate.usecases.production.history_page import history_page
from tests.report.test_browser import CHROMIUM, open_page
from tests.usecases.history_builder import nights, reverted
from tests.usecases.production_builder import WORKLOAD, promote, record

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened"),
]


def on_probation(services: Any) -> None:
    promote(services)
    nights(services, range(1, 5))


def without_a_flag(services: Any) -> None:
    for number in range(1, 4):
        record(services, number, "baseline")


def of_half_a_thousand_runs(services: Any) -> None:
    promote(services)
    for number in range(1, 501):
        record(services, number, "baseline" if number % 6 == 0 else "compile")


@pytest.mark.parametrize(
    ("happens", "charts"),
    [
        (lambda services: reverted(services, loss=0.045), 4),
        (on_probation, 3),  # without a baseline run of production nothing can be priced
        (without_a_flag, 2),
        (of_half_a_thousand_runs, 3),
    ],
    ids=["reverted", "on_probation", "without_a_flag", "500_runs"],
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_is_drawn_and_nothing_complains(
    happens: Any, charts: int, theme: str, services: Any, tmp_path: Path
) -> None:
    happens(services)

    dom, complaints = open_page(history_page(WORKLOAD, services), tmp_path, f"?theme={theme}")

    assert [] == complaints
    assert 'data-charts="drawn"' in dom
    assert "data-failed" not in dom
    assert charts == dom.count('class="plot-container')
