"""The page of all workloads: what a person has to do stands first, unknown money is a dash."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from compilegate.domain.formats import UNKNOWN, money
from compilegate.domain.production.savings import Savings
from compilegate.domain.production.summaries import Fleet, TimeWindow, WorkloadWeek
from compilegate.domain.utc import day
from compilegate.report.fleet import render_fleet
from tests.report.browser import CHROMIUM, assert_tables_readable, plain
from tests.report.test_render import HOSTILE

WEEK = TimeWindow(1_790_000_000, 1_790_604_800)
SAVED = Savings(12, 12, 0, 0, 12, 420_500_000, expected_usd=400.0)
ON = WorkloadWeek("bert", "ml", "permanent", True, "compile", {"compile": 3}, savings=SAVED)
WORKLOADS = (
    replace(ON, workload="watched", state="probation", watched=5, probation_runs=12),
    ON,
    WorkloadWeek("quiet", None, "off", False),
    WorkloadWeek("waits", "ads", "off", False, approval="m2k4t7xz", trial="m2k4t7xz"),
    WorkloadWeek("worse", "ads", "reverted", False, "compile"),
    WorkloadWeek("moved", "ads", "stale", True, "compile"),
    WorkloadWeek("broken", "ads", "off", False, runs={"baseline": 2}, failed=1),
    WorkloadWeek("trial", "ads", "off", False, trial="m2k4t7xz", canary="m2k4t7xz"),
)


def page(*workloads, unread=()):
    return render_fleet(Fleet("prod", WEEK, workloads, unread))


def test_hostile_words_are_shown_and_never_run():
    html = page(replace(ON, owner=HOSTILE, candidate=HOSTILE))

    assert "<script" not in html


class Cells(HTMLParser):
    """The rows of the table and the cards, as text."""

    def __init__(self, html):
        super().__init__()
        self.rows = []
        self.cards = []
        self._into = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        kind = dict(attrs).get("class") or ""
        if tag == "tr":
            self.rows.append((kind == "marked", []))
        elif tag in ("td", "th"):
            self.rows[-1][1].append("")
            self._into.append(self.rows[-1][1])
        elif tag == "div" and kind == "card":
            self.cards.append([])
        elif self.cards and not self.rows and tag in ("h2", "p") and len(self.cards[-1]) < 3:
            self.cards[-1].append("")
            self._into.append(self.cards[-1])

    def handle_endtag(self, tag):
        if tag in ("td", "th", "h2", "p") and self._into:
            self._into.pop()

    def handle_data(self, data):
        if self._into:
            self._into[-1][-1] += data


def cards(*workloads):
    return {name: (value, note) for name, value, note in Cells(page(*workloads)).cards}


def rows(*workloads):
    return [cells for _, cells in Cells(page(*workloads)).rows[1:]]


def saving(usd, expected, runs):
    priced = 0 if usd is None else runs
    return Savings(runs, runs, 0, 0, priced, round((usd or 0) * 1e6), expected_usd=expected)


def test_a_row_has_each_figure_in_its_column():
    (row,) = rows(replace(ON, runs={"compile": 3, "baseline": 4}, failed=0))
    (bare,) = rows(WorkloadWeek("bare", None, "later", False))

    assert ["bert", "ml", "On permanently", "compile", "7 (3 with a candidate)", "0", money(420.5),
            money(400.0), ""] == row  # fmt: skip
    assert "3 (3 with a candidate)" == rows(ON)[0][4]
    assert ["bare", UNKNOWN, "later", UNKNOWN, "0", "0", UNKNOWN, UNKNOWN, ""] == bare


SEVERAL = replace(ON, failed=2, trial="t", watched=1)
STANDS = [
    (replace(SEVERAL, approval="t", state="reverted"), "Approve or reject",
     'flag approve bert --reason "..."'),
    (replace(SEVERAL, state="reverted"), "Find out why it got worse", "report bert --history"),
    (replace(SEVERAL, state="stale"), "Changed since the proof, try it again", "run bert.yaml"),
    (replace(SEVERAL, state="probation"), "2 runs failed, see why", "status bert"),
    (replace(ON, state="probation", trial="t", watched=1), "In a trial", ""),
    (replace(ON, trial="t", canary="t"), "In a trial with canary runs", ""),
    (replace(ON, state="probation", watched=5, probation_runs=12), "5 of 12 runs watched", ""),
    (replace(ON, state="probation", watched=5), "5 runs watched", ""),
]  # fmt: skip


@pytest.mark.parametrize(("one", "task", "command"), STANDS, ids=[task for _, task, _ in STANDS])
def test_of_several_tasks_a_row_names_the_most_urgent_with_its_command(one, task, command):
    html = page(one)
    ((marked, cells),) = Cells(html).rows[1:]

    assert (str(int(marked)), not marked) == (cards(one)["Need attention"][0], "In order" in html)
    assert [True] * 2 == [text in html for text in ('class="stacked"', ">Workloads</h2>")]
    assert cells[-1] == (f"{task}: compilegate {command} --stage prod" if command else task)
    assert marked is bool(command)


def test_rows_are_in_the_order_of_urgency_then_of_saving_then_of_names():
    mixed = [
        replace(ON, workload="b-small", savings=saving(0.5, None, 1)),
        replace(ON, workload="a-large", savings=saving(99.0, None, 1)),
        replace(ON, workload="z-lost", savings=saving(-5.0, None, 1)),
        replace(ON, workload="c-none", savings=None),
        replace(ON, workload="a-none", savings=saving(None, None, 1)),
        replace(ON, workload="f-cheap", failed=1, savings=saving(1.0, None, 1)),
        replace(ON, workload="e-dear", failed=1, savings=saving(2.0, None, 1)),
        replace(ON, workload="y-moved", state="stale", savings=None),
    ]

    assert [
        "y-moved", "e-dear", "f-cheap", "a-large", "b-small", "a-none", "c-none", "z-lost",
    ] == [cells[0] for cells in rows(*mixed)]  # fmt: skip


def test_of_thousands_of_workloads_the_page_has_the_most_urgent_and_stays_light():
    quiet = [
        replace(ON, workload=f"workload-with-a-long-name-{n:04}", savings=None)
        for n in range(5_000)
    ]
    html = page(*quiet, WORKLOADS[4], WORKLOADS[3])

    shown = Cells(html).rows[1:]
    assert ["waits", "worse", quiet[0].workload] == [cells[0] for _, cells in shown[:3]]
    assert [True, True, False] == [marked for marked, _ in shown[:3]]
    assert 500 == len(shown)
    assert "4,502 workloads more" in html
    assert len(html) < 400_000
    assert ["more: save" in page(*quiet[:n]) for n in (500, 501)] == [False, True]


def test_without_a_workload_there_is_no_table_and_it_says_so():
    html = page()

    assert [] == Cells(html).rows
    assert ["No workload is registered" in one for one in (html, page(ON))] == [True, False]


def test_what_could_not_be_read_is_named_in_order_and_within_bounds():
    names = tuple(f"w{n:04}" for n in reversed(range(509)))
    html = page(ON, unread=names)

    assert "could not be read: w0000, w0001, " in html
    assert "In order" not in html
    assert "w0499." in html
    assert "w0500" not in html
    assert f"{day(WEEK.since)} to {day(WEEK.until)} (UTC)" in plain(html)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened")
def test_a_browser_shows_it_readably_at_every_size(tmp_path):
    assert_tables_readable(page(*WORKLOADS), tmp_path)
