"""The statement as CSV and as a page: every amount in its column, nothing that a reader runs."""

import csv
import io
import re
from datetime import UTC, datetime

import pytest

from compilegate.domain.fleet.month import Amount, Estimate, Month, MonthFigures
from compilegate.domain.formats import UNKNOWN
from compilegate_statement.page import render_statement, statement_csv
from compilegate_statement.statement import Statement
from tests.report.browser import CHROMIUM, assert_tables_readable, plain
from tests.report.test_fleet import Cells
from tests.report.test_render import HOSTILE

DECEMBER = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
CLOSED = DECEMBER + 14 * 86_400
BUSY = MonthFigures(
    Amount(2, 12_500_001, 1), Amount(1, 4_000_000, 0), Amount(3, 2_340_000, 0),
    Amount(40, 8_500_000_000, 2), Estimate(2, 40_000_000, 9_000_000, 0),
    Estimate(38, 2_345_678_901, 120_000_000, 2),
)  # fmt: skip


def document(*months, unread=(), at=CLOSED, owner=None):
    made = [Month(name, "2026-11", whose, at, figures) for name, whose, figures in months]
    return Statement("prod", "2026-11", owner, at, made, unread).document()


def page(*months, **more):
    return render_statement(document(*months, **more))


def test_csv_has_a_row_for_each_workload_in_micro_dollars_and_in_dollars():
    made = document(("b", "ml", BUSY), ("a", None, MonthFigures(saved=Estimate(1, -7))))
    none, busy = csv.DictReader(io.StringIO(statement_csv(made)))
    (header,) = statement_csv(document()).splitlines()  # of a month without any
    assert [*none] == header.split(",")
    assert (1, "prod") == (made["schema"], made["stage"])

    assert {
        "month": "2026-11", "state": "final", "workload": "b", "owner": "ml", "entries": "46",
        "unread_entries": "0", "decided_entries": "2", "decided_micro_usd": "12500001",
        "decided_usd": "12.500001", "decided_unknown": "1", "failed_entries": "1",
        "failed_micro_usd": "4000000", "failed_usd": "4.000000", "failed_unknown": "0",
        "stopped_entries": "3", "stopped_micro_usd": "2340000", "stopped_usd": "2.340000",
        "stopped_unknown": "0", "spent_entries": "6", "spent_micro_usd": "18840001",
        "spent_usd": "18.840001", "spent_unknown": "1", "holdback_runs": "2",
        "holdback_micro_usd": "40000000", "holdback_usd": "40.000000",
        "holdback_low_micro_usd": "25196317", "holdback_low_usd": "25.196317",
        "holdback_high_micro_usd": "54803683", "holdback_high_usd": "54.803683",
        "holdback_unknown": "0", "saved_runs": "38", "saved_micro_usd": "2345678901",
        "saved_usd": "2345.678901", "saved_low_micro_usd": "2148296466",
        "saved_low_usd": "2148.296466", "saved_high_micro_usd": "2543061336",
        "saved_high_usd": "2543.061336", "saved_unknown": "2", "net_micro_usd": "2326838900",
        "net_usd": "2326.838900", "net_low_micro_usd": "2129456465", "net_low_usd": "2129.456465",
        "net_high_micro_usd": "2524221335", "net_high_usd": "2524.221335", "net_unknown": "3",
        "production_entries": "40", "production_micro_usd": "8500000000",
        "production_usd": "8500.000000", "production_unknown": "2",
    } == busy  # fmt: skip
    assert ("a", "", "-7", "-0.000007", "0.000000") == (
        none["workload"], none["owner"], none["net_micro_usd"], none["net_usd"], none["spent_usd"],
    )  # fmt: skip


def test_what_is_unknown_is_no_amount_and_adds_nothing_to_the_sums():
    unpriced, unsaved = (
        MonthFigures(failed=Amount(0, 0, 2)), MonthFigures(saved=Estimate(unknown=4)),
    )  # fmt: skip
    made = document(("a", None, unpriced), ("b", None, unsaved), ("c", None, BUSY))
    first, second, third = csv.DictReader(io.StringIO(statement_csv(made)))

    assert ["", "2", "0.000000", "", "2"] == [
        first[name]
        for name in ("spent_usd", "failed_unknown", "decided_usd", "net_usd", "net_unknown")
    ]
    assert ["", "", "", "4", "0.000000", ""] == [
        second[name]
        for name in (
            "saved_usd", "saved_low_usd", "saved_high_micro_usd", "saved_unknown", "spent_usd",
            "net_micro_usd",
        )
    ]  # fmt: skip
    assert (third["net_micro_usd"], 3 + 2 + 4) == (
        str(made["total"]["net"]["micro_usd"]), made["total"]["net"]["unknown"],
    )  # fmt: skip


def test_no_cell_of_a_spreadsheet_is_a_formula():
    made = document(("=1+1", "@sum", BUSY), unread=("+x",))
    rows = list(csv.DictReader(io.StringIO(statement_csv(made))))

    assert [("'=1+1", "'@sum"), ("'+x", "")] == [(one["workload"], one["owner"]) for one in rows]


def test_the_page_has_each_line_with_its_amount_and_interval():
    html = page(("b", "ml", BUSY), ("c", None, MonthFigures(unread=1)))
    found = Cells(html).rows
    lines = {cells[0]: cells[1:4] for _, cells in found}

    assert ["$12.50*", UNKNOWN, "2 trials"] == lines["Trials that decided"]
    assert ["$4.00", UNKNOWN, "1 trial"] == lines["Trials that failed"]
    assert ["$2.34", UNKNOWN, "3 trials"] == lines["Trials that were stopped"]
    assert ["$18.84*", UNKNOWN, "6 trials"] == lines["Spent on trials"]
    assert ["$2,345.68*", "$2,148.30 to $2,543.06", "38 runs"] == lines["Saved by runs"]
    assert ["$2,326.84*", "$2,129.46 to $2,524.22", UNKNOWN] == lines["Net"]
    assert ["$40.00", "$25.20 to $54.80", "2 runs"] == lines["Cost of the holdback"]
    assert ["$8,500.00*", UNKNOWN, "40 runs"] == lines["All production runs"]
    of_each = ["$18.84*", "$2,345.68*", "$2,148.30 to $2,543.06", "$2,326.84*", "$40.00"]
    of_none = ["$0.00", "$0.00", UNKNOWN, UNKNOWN, "$0.00"]
    no_owner = "without an owner"
    assert [
        [no_owner, "1", *of_none], ["ml", "1", *of_each], ["b", "ml", *of_each],
        ["c", no_owner, *of_none],
    ] == [cells for _, cells in found if cells[0] in ("ml", "b", "c", no_owner)]  # fmt: skip
    assert ["Statement", "Owners", "Workloads"] == re.findall(r"<h2 id=[^>]*>([^<]*)<", html)[:3]
    assert 3 == html.count('class="stacked"')


def test_the_page_says_what_its_sums_are_of_and_what_they_lack():
    lost = tuple(f"lost{n:02}" for n in range(25))
    whole = plain(page(("b", "ml", BUSY), ("idle", "ml", MonthFigures())))
    lacking = plain(page(("b", "ml", BUSY), unread=lost, at=DECEMBER))

    assert "46 entries of the ledger, to the micro-dollar: 1 workload; 1 more had nothing" in whole
    assert "Final" in whole
    assert [("good", True), ("open", True), ("bad", True), ("bad", True)] == [
        (tone, f'class="verdict {tone}"' in html)
        for tone, html in (
            ("good", page(("b", "ml", BUSY))),
            ("open", page(("b", "ml", BUSY), at=CLOSED - 1)),
            ("bad", page(("b", "ml", BUSY), unread=("lost",))),
            ("bad", page(("b", "ml", MonthFigures(unread=1)))),
        )
    ]
    assert "Provisional" not in whole
    assert "1 workload, and 25 that could not be read (lost00, " in lacking
    assert "lost19, …)" in lacking
    assert "Incomplete" in lacking
    assert "Provisional until 2026-12-15 (UTC)" in lacking
    assert "Not in the sums: 1 trial and 2 runs without a known price" in lacking
    assert "Provisional" in plain(page(("b", "ml", BUSY), at=CLOSED - 1))
    assert "Not in the sums" not in plain(page(("b", None, MonthFigures(saved=Estimate(1, -7)))))


@pytest.mark.parametrize(
    ("owner", "whose", "option"),
    [
        (None, "all workloads", ""), ("", "workloads without an owner", " --owner ''"),
        ("m l", "workloads of m l", " --owner 'm l'"),
    ],
)  # fmt: skip
def test_the_page_of_one_owner_says_so_and_how_to_have_its_figures(owner, whose, option):
    shown = plain(page(("b", "m l", BUSY), owner=owner))

    assert whose in shown
    assert f"compilegate statement --month 2026-11 --csv{option} --stage prod" in shown


def test_of_many_workloads_the_page_has_those_of_the_largest_amounts():
    html = page(*((f"w{n:03}", "o", MonthFigures(decided=Amount(1, n))) for n in range(520)))
    listed = [cells[0] for _, cells in Cells(html).rows if cells[0].startswith("w")]

    assert (["w519", "w518"], 500) == (listed[:2], len(listed))
    assert re.search(r"\b20 workloads more", html)
    html = page(("a", "o", MonthFigures(unread=1)), ("b", "o", MonthFigures(decided=Amount(1, 1))))
    assert ["b", "a"] == [cells[0] for _, cells in Cells(html).rows if cells[0] in "ab"]


def test_hostile_words_are_shown_and_never_run():
    assert "<script" not in page((HOSTILE, HOSTILE, BUSY), unread=(HOSTILE,), owner=HOSTILE)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: the page is not opened")
def test_a_browser_shows_it_readably_at_every_size(tmp_path):
    html = page(("b", "ml", BUSY), ("c", None, BUSY), unread=("lost",), at=DECEMBER)
    assert_tables_readable(html, tmp_path)
