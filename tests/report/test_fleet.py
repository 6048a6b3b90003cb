"""The page of all workloads: what a person has to do stands first, unknown money is a dash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compilegate.domain.formats import UNKNOWN
from compilegate.domain.production.savings import Savings
from compilegate.domain.production.summaries import Fleet, TimeWindow, WeeklySummary
from compilegate.report.fleet import MOST_ROWS, render_fleet
from tests.report.browser import BROKEN_PIECES, CHROMIUM, assert_readable, browser, plain
from tests.report.test_browser import AXE
from tests.report.test_render import HOSTILE

WEEK = TimeWindow(1_790_000_000, 1_790_604_800)
SAVED = Savings(12, 12, 0, 0, 12, 3.0, 420.5, 400.0)
ON = WeeklySummary("bert", "ml", "permanent", True, "compile", {"compile": 3}, savings=SAVED)
WORKLOADS = (
    replace(ON, workload="watched", state="probation", watched=5, probation_runs=12),
    ON,
    WeeklySummary("quiet", None, "off", False),
    WeeklySummary("waits", "ads", "off", False, approval="m2k4t7xz", trial="m2k4t7xz"),
    WeeklySummary("worse", "ads", "reverted", False, "compile"),
    WeeklySummary("moved", "ads", "stale", True, "compile"),
    WeeklySummary("broken", "ads", "off", False, runs={"baseline": 2}, failed=1),
    WeeklySummary("trial", "ads", "off", False, trial="m2k4t7xz", canary="m2k4t7xz"),
)


def page(*workloads: WeeklySummary, unread: tuple[str, ...] = ()) -> str:
    return render_fleet(Fleet("prod", WEEK, workloads, unread))


def test_what_needs_a_person_stands_first_with_its_command() -> None:
    html = page(*WORKLOADS)
    order = [html.index(f">{one.workload}</th>") for one in WORKLOADS]
    due = {"waits", "worse", "moved", "broken"}

    last_due = max(at for at, one in zip(order, WORKLOADS, strict=True) if one.workload in due)
    assert all(at > last_due for at, one in zip(order, WORKLOADS, strict=True)
               if one.workload not in due)  # fmt: skip
    assert "3 of 8 workloads with a candidate on; 4 need attention" in html
    assert "compilegate report worse --history --stage prod" in plain(html)
    assert "5 of 12 runs watched" in html
    assert "$841" in html


def test_the_most_urgent_task_stands_first_whatever_the_names_are() -> None:
    html = page(*WORKLOADS)
    order = [html.index(f">{name}</th>") for name in ("waits", "worse", "moved", "broken")]

    assert sorted(order) == order
    assert 'compilegate flag approve waits --reason "..." --stage prod' in plain(html)


def test_a_saving_that_nothing_is_known_of_is_a_dash_and_no_sum() -> None:
    html = page(WeeklySummary("quiet", None, "off", False))

    assert f'<p class="value unknown">{UNKNOWN}</p>' in html
    assert "none needs attention" in html


def test_what_cannot_be_read_is_named_and_never_in_order() -> None:
    html = page(ON, unread=("lost",))

    assert "could not be read: lost" in html
    assert "In order" not in html


def test_hostile_words_are_shown_and_never_run() -> None:
    html = page(replace(ON, owner=HOSTILE, candidate=HOSTILE))

    assert "<script" not in html


def test_the_page_of_thousands_of_workloads_stays_light() -> None:
    many = [
        replace(WORKLOADS[n % len(WORKLOADS)], workload=f"workload-with-a-long-name-{n:05}")
        for n in range(5_000)
    ]
    html = page(*many)

    assert len(html) < 400_000
    assert f"{5_000 - MOST_ROWS:,} workloads more" in html


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened")
def test_a_browser_shows_it_readably_at_every_size(tmp_path: Path) -> None:
    file = tmp_path / "fleet.html"
    file.write_text(page(*WORKLOADS))

    with browser(tmp_path / "profile") as chromium:
        assert_readable(chromium, file)
        for width in (1280, 700, 420):
            chromium.open(file, width=width)
            assert [] == chromium.run(BROKEN_PIECES)
        for dark in (False, True):
            chromium.open(file, width=420, dark=dark)
            chromium.run(f"{AXE.read_text(encoding='utf-8')};0")
            found = "axe.run().then(({violations}) => violations.map(({id}) => id))"
            assert [] == chromium.run(found)
