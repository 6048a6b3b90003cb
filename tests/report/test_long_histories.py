"""The history page of very many runs: the work grows with them and no faster, the page does not."""

import json
import re

import pytest

from compilegate.domain.production.history import history
from compilegate.domain.production.summaries import TimeWindow, day_of, workload_week
from compilegate.report.history.render import render_history
from tests.counted import instructions
from tests.domain.production.run_builder import BEGIN, DAY
from tests.report import histories

# So many runs more, twice; the later ones may take a little more: their numbers have more digits.
STEP, MORE = 80, 1.05
ALARMS = {"alarm", "alarm_cleared"}
WEEK = TimeWindow(BEGIN + 10 * DAY, BEGIN + 17 * DAY)


def page(runs):
    # Every promotion, alarm and review goes on for as long as there are runs.
    view = histories.view(runs, changes=10, watched=runs)
    return lambda: render_history(view)


def fold(runs):
    entries = list(histories.entries(runs, changes=10))
    return lambda: history(entries)


def week(runs):
    past = history(histories.entries(runs, changes=10))
    return lambda: workload_week("bert-docs", past, WEEK)


def day(runs):
    past = history(histories.entries(runs, changes=10))
    return lambda: day_of(past, since=WEEK.since, until=WEEK.since + DAY)


# A saving compares runs of months near each other, which a few runs more do not fill.
@pytest.mark.parametrize(
    ("read", "times"), [(page, (1, 2, 3)), (fold, (1, 2, 3)), (week, (1, 4, 7)), (day, (1, 2, 3))]
)
def test_a_run_more_takes_the_same_work_whatever_came_before(read, times):
    read(STEP)()  # templates and patterns are compiled once, fields of documents looked up

    first, second, third = (instructions(read(number * STEP)) for number in times)

    assert third - second < MORE * (second - first)


def test_a_page_shows_the_latest_runs_and_says_how_many_it_leaves_out():
    runs, shown, listed = 10_050, 1_000, 10_000
    view = histories.view(runs, watched=100)

    report = render_history(view)

    document = json.loads(report.json)
    numbers = [run["number"] for run in document["runs"]]
    assert list(range(51, runs + 1)) == numbers
    assert 50 == document["runs_left_out"]
    # Beside the run itself: a change of the flag, an alarm, its end.
    others = len(view.history.flags) + sum(bool(one.codes & ALARMS) for one in view.history.reviews)
    assert listed == len(document["events"])
    assert runs + others - listed == document["events_left_out"]
    rows = re.findall(r'<th scope="row" data-label="Run">(\d+)</th>', report.html)
    assert (shown, str(runs)) == (len(rows), rows[-1])
    assert f"Of {runs:,} runs" in report.html
    assert len(report.html) < 1_000_000
    # What is counted is of all runs.
    assert f"| Production runs | {runs} |" in report.markdown
