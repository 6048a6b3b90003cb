"""The history as page, Markdown and document, from a few unequal runs."""

import base64
import csv
import io
import json
import re
from dataclasses import replace

import pytest

from compilegate.domain.codec import read
from compilegate.domain.decision import Decision
from compilegate.domain.flag import Flag
from compilegate.domain.formats import MINUS, UNKNOWN
from compilegate.domain.naming import history_key
from compilegate.domain.reasons import Reason
from compilegate.domain.records.production import (
    TEAM,
    PlannedTransition,
    RegistrationChange,
    Review,
)
from compilegate.domain.records.trials import TrialDecided
from compilegate.report import markup
from compilegate.report.history import render, view
from compilegate.report.history.render import headline, label, lede, metric_cards, render_history
from compilegate.report.history.view import Sum
from tests.decision_builder import decision_document, saving, speedup
from tests.domain.production.run_builder import BEGIN, DAY, production_run
from tests.report.browser import plain
from tests.report.histories import ON, REVERTED, WORKLOAD, flag, view_of

DUE = "2026-09-30T12:00:00Z"
RUNS = [
    production_run(1, "baseline", metric=2.0, wall_seconds=100.0, usd=8.0),
    production_run(2, metric=1.234567, wall_seconds=50.0, usd=4.0,
                   details={"spec_key": "s", "scheduled": DUE, "compile_bundle": {"state": "x"}}),
    production_run(3, "other", confirm=True, counts=False, finished=False, launched_by=TEAM,
                   status="Failed", metric=None, wall_seconds=None, usd=None),
]  # fmt: skip
RUNS[2] = replace(RUNS[2], reason="lost")
STARTED = {"kind": "started", "at": BEGIN, "execution": "e-t1"}


def unequal(**more):
    values = {"faults": {"s": "lr"}, "simulated": "here", **more}
    made = view_of(RUNS, flag(1, 1, ON, decision_key="decisions/t1"), STARTED, **values)
    made.__dict__["sums"] = {
        "q": Sum("q", "noun", 4.0, 0.5, [(n, n / 2, "compile", False) for n in (1, 2, 3)])
    }
    return made


def row(number, metric, wall, state, fault=None):
    run = RUNS[number - 1]
    return {
        "number": number, "run": run.run, "job": run.job, "arm": run.arm, "why": run.why,
        "confirm": number == 3, "counts": number < 3, "finished": number < 3, "metric": metric,
        "wall_seconds": wall, "usd": run.usd, "started_at": BEGIN + number * DAY,
        "flag_state": state, "scheduled": run.details.get("scheduled"), "injected_fault": fault,
        "launched_by": "team" if number == 3 else "train",
        "reason": "lost" if number == 3 else None,
        "compile_bundle": run.details.get("compile_bundle"),
    }  # fmt: skip


ROWS = [
    row(1, 2.0, 100.0, "off"), row(2, 1.234567, 50.0, "probation", "lr"),
    row(3, None, None, "probation"),
]  # fmt: skip


@pytest.mark.parametrize("left_out", [0, 1])
def test_the_document_has_every_figure_and_says_how_many_runs_it_leaves_out(left_out, monkeypatch):
    monkeypatch.setattr(render, "MOST_LISTED", 3 - left_out)
    made = unequal()
    report = render_history(made)
    document = json.loads(report.json)
    events = document.pop("events")

    assert {
        "schema": 1, "workload": "bert-docs", "stage": "prod", "simulated": "here",
        "simulated_clock": True, "label": "On probation", "headline": headline(made),
        "lede": lede(made), "promoted_by_trial": "t1", "quality": WORKLOAD["quality"],
        "flag": {"enabled": True, "state": "probation", "candidate": "compile", "since": ON.since},
        "runs": ROWS[left_out:], "runs_left_out": left_out, "events_left_out": 0,
        "savings": made.savings.to_dict(),
        "sums": {"q": {
            "key": "q", "noun": "noun", "limit": 4.0, "shift": 0.5,
            "points": [[n, n / 2, "compile", False] for n in (1, 2, 3)[left_out:]],
        }},
    } == document  # fmt: skip
    turned_on = events[2]
    assert ["started", "run", "flag", "run", "run"] == [one["kind"] for one in events]
    assert {
        "at": BEGIN + 1.5 * DAY, "kind": "flag", "title": "Turned on: compile", "text": "proven.",
        "tone": "good", "place": 1.5, "links": ["decisions/t1"],
    } == turned_on  # fmt: skip
    assert headline(made) == report.headline
    assert json.loads(render_history(view_of([])).json)["promoted_by_trial"] is None


def table(html):
    rows = html.partition('id="table-runs"')[2].partition("</table>")[0].split("<tr")[1:]
    return [
        [" ".join(one.split()) for one in re.findall(r"<t[hd][^>]*>([^<]*)<", row)] for row in rows
    ]


def test_the_page_shows_each_run_with_what_is_to_be_said_of_it():
    html = render_history(unequal()).html

    assert [
        ["Run", "Arm", "Why", "Flag", "eval_loss", "Wall clock", "Cost", "Notes"],
        ["1", "baseline", "the flag is off", "off", "2.0000", "100 s", "$8.00", ""],
        ["2", "compile", "the flag is on", "probation", "1.2346", "50 s", "$4.00",
         "injected fault"],
        ["3", "other", "the flag is on", "probation", "failed", UNKNOWN, UNKNOWN,
         "checks an alarm; no evidence; lost"],
    ] == table(html)  # fmt: skip
    assert 'class="stacked"' in html
    assert {"Every production run", "Every run"} == {*re.findall("Every [a-z ]*run", html)}
    assert "left out" not in html
    nothing = render_history(view_of([], workload=None, simulated="<b>\x1b")).html
    assert 'id="table-runs"' not in nothing
    assert "&lt;b&gt;\\x1b" in nothing
    assert [True, False] == [
        markup.switch_style(2) in html, markup.switch_style(1).strip() in nothing,
    ]  # fmt: skip
    assert "\n\n\n" not in html


def saved(html, name):
    (link,) = re.findall(rf'base64,([^"]+)" download="{name}"', html)
    return base64.b64decode(link).decode()


def test_runs_and_document_can_be_saved_from_the_page(monkeypatch):
    report = render_history(unequal())
    lines = list(csv.DictReader(io.StringIO(saved(report.html, "bert-docs-runs.csv"))))

    assert report.json == saved(report.html, "bert-docs-history.json") + "\n"
    assert [(str(one["number"]), one["job"]) for one in ROWS] == [
        (line["number"], line["job"]) for line in lines
    ]
    assert "runs.csv" not in render_history(view_of([])).html
    monkeypatch.setattr(markup, "EMBEDDED_MAX", 1)
    assert 2 == render_history(unequal()).html.count(history_key("bert-docs", "json"))


def test_the_page_of_the_latest_runs_says_what_it_leaves_out(monkeypatch):
    for module in (render, view):
        monkeypatch.setattr(module, "MOST_SHOWN", 2)
    monkeypatch.setattr(render, "MOST_LISTED", 2)
    monkeypatch.setattr("compilegate.report.history.timeline.MOST_LISTED", 4)
    html = render_history(unequal()).html
    text = plain(html)

    assert ["2", "3"] == [cells[0] for cells in table(html)[1:]]
    assert "The latest 2 production runs" in text
    assert "The latest 2 runs" in text
    note = "Of 3 runs, charts and table show the latest 2. Figures and sums are of all."
    assert 2 == text.count(note)
    assert "left out here: 2. Events before them, in the ledger alone: 1. Times are" in text
    assert 2 == html.partition('class="timeline"')[2].partition("</ol>")[0].count("<li")


@pytest.mark.parametrize(
    ("region", "bucket", "shown"),
    [
        ("eu-west-1", "data", ">s3://data/decisions/t1</a>"), (None, "data", ">s3://data/decisions/t1<"),
        ("eu-west-1", None, "<code>decisions/t1<"),
    ],
)  # fmt: skip
def test_what_a_line_rests_on_is_linked_where_a_console_shows_it(region, bucket, shown):
    html = render_history(unequal(region=region, bucket=bucket)).html

    assert shown in html
    assert bool(region and bucket) == ("console.aws.amazon.com/s3/object/data" in html)


def test_the_page_says_whose_it_is_on_which_machines_and_what_is_next():
    training = {"instance_count": 2, "instance_type": "ml.x"}
    text = plain(render_history(unequal(workload={"owner": "ana", "training": training})).html)

    assert "Owner ana Machines 2 x ml.x" in " ".join(re.sub("<[^>]*>", " ", text).split())
    assert "compilegate status bert-docs --stage prod" in text
    assert "No production run has ended yet." in plain(render_history(view_of([])).html)


@pytest.mark.parametrize(("count", "omitted"), [(40, 0), (42, 2)])
def test_markdown_keeps_the_forty_latest_lines(count, omitted):
    made = [production_run(n, why="confirm") for n in range(1, count + 1)]
    text = render_history(view_of(made)).markdown
    listed = re.findall(r"\*\*Run (\d+)", text)

    assert [str(n) for n in range(count - 39, count + 1)] == listed
    said = re.findall(r"left out here: (\d+)\.\n", text)
    assert ([str(omitted)] if omitted else []) == said


def reviewed(number, *messages, change=None, code="alarm"):
    reasons = tuple(Reason(code, message) for message in messages)
    transition = change and PlannedTransition(change, "revert", "{}", "x", 1)
    at = int(production_run(number).ended_at)
    return Review(at, f"r{number}", "t1", reasons=reasons, transition=transition).to_entry()


def decided(trial, *reasons):
    return TrialDecided(BEGIN, trial, "promote", "key", reasons=reasons).to_entry()


def registered(active):
    return RegistrationChange(1, active, BEGIN + 9).to_entry()


PERMANENT = Flag(True, "permanent", "compile")
OFF_BY_REVIEW = flag(2, 9, REVERTED, by="train", action="revert", change_id="c2", reason="own. ")


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        ([decided("t0", "other"), decided("t1", "the first.", "second"), flag(1, 1, PERMANENT)],
         "The candidate is on permanently: the first"),
        ([decided("t1", "first"), flag(1, 1, PERMANENT, by="train", reason="own.")],
         "The candidate is on permanently: own"),
        ([decided("t0", "other"), flag(1, 1, PERMANENT)],
         "The candidate is on permanently: proven"),
        ([flag(1, 1, ON), reviewed(2, "of another", change="c1"),
          reviewed(3, " It fell. ", "more", change="c2"), reviewed(4, "later"), OFF_BY_REVIEW],
         "The candidate was turned off automatically: It fell"),
        ([flag(1, 1, ON), reviewed(2, "of another"), OFF_BY_REVIEW],
         "The candidate was turned off automatically: own"),
        ([flag(1, 1, PERMANENT), registered(False)],
         "Retired; before that: the candidate is on permanently: proven"),
        ([flag(1, 1, Flag(True, "stale", "fast"))],
         "“fast” is still on: production has changed since the proof"),
        ([flag(1, 1, Flag(False, "stale", "fast"))],
         "“fast” is off until a new trial proves it again: production has changed since the proof"),
        ([flag(1, 1, Flag(False, "off"))], "Production trains without a compiler: proven"),
        ([flag(1, 1, ON, by="human:ana")], "ana turned “compile” on by hand: proven"),
        ([registered(False)], "Retired; before that: nothing has happened to bert-docs yet"),
        ([registered(True)], "bert-docs is registered, and production has not trained it yet"),
        ([flag(1, 1, ON), reviewed(2, "earlier"), reviewed(3, "fell")],
         "The candidate is on, and an alarm is being checked: fell"),
        ([flag(1, 1, ON), reviewed(2, "fell"), reviewed(3, "none", code="probation_goes_on")],
         "The candidate is on and watched run by run: none"),
        ([flag(1, 1, ON), reviewed(2, "fell"), reviewed(3)],
         "“compile” is on and watched run by run: nothing to judge yet"),
    ],
)  # fmt: skip
def test_the_cause_is_what_the_trial_or_the_review_said_first(entries, cause):
    assert cause == headline(view_of([], *entries))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], ("Not started", "off")), ([flag(1, 1, ON)], ("On probation", "good")),
        ([flag(1, 1, ON), reviewed(2, "x")], ("Alarm being checked", "open")),
        ([flag(1, 1, ON), reviewed(2, "x"), flag(2, 3, REVERTED, by="train", action="revert")],
         ("Turned back off", "bad")),
        ([flag(1, 1, ON), flag(2, 2, REVERTED, by="human:ana")], ("Turned off by hand", "off")),
        ([registered(False)], ("Retired", "off")),
    ],
)  # fmt: skip
def test_the_label_is_that_of_the_flag_unless_more_is_to_be_said(entries, expected):
    made = label(view_of([], *entries))

    assert expected == (made.text, made.tone)
    assert "Off" == label(view_of(RUNS)).text


def bought():
    """Two baseline runs, the flag turned on with the second, then two of the candidate."""
    made = [production_run(n, "baseline", usd=8.0, wall_seconds=100.0, metric=1.5) for n in (1, 2)]
    made += [production_run(n, usd=4.0, wall_seconds=wall, metric=1.25)
             for n, wall in ((3, 50.0), (4, 25.0))]  # fmt: skip
    measured = decision_document(saving=saving(5.0), speedup=speedup(2.0))
    turned_on = {**flag(1, 1, ON), "at": BEGIN + 2 * DAY}
    return view_of(made, turned_on, decision=read(Decision, measured))


def test_the_cards_say_where_it_stands_what_it_does_and_what_it_is_worth():
    cards = [(one.name, one.value, one.note) for one in metric_cards(bought())]

    assert [
        ("Flag", "on", "state probation, since 2026-01-01 00:00"),
        ("Production runs", "4", "2 baseline, 2 compile"),
        ("eval_loss since it was turned on", f"Δ {MINUS}0.25",
         "all production runs: mean, against the baseline runs since then; margin 0.05; "
         "lower is better"),
        # The geometric mean of two and four.
        ("Speed-up in production", "2.83x", "2 runs of candidates in production, each against the "
         "baseline runs before it; by the trial 2.00x (1.90 to 2.10), from 3 short blocks"),
        ("Saved so far", "$8.00", "2 runs; expected $10.00; 80% of it"),
    ] == cards  # fmt: skip
    nothing = {one.name: one.note for one in metric_cards(view_of(RUNS[2:]))}
    assert {
        "Flag": "never changed", "Production runs": "1 other, 1 failed",
        "eval_loss since it was turned on": "Needs runs of both arms since then.",
        "Speed-up in production": "Needs runs of both arms.",
        "Saved so far": "Nothing has been turned on.",
    } == nothing  # fmt: skip
    assert [] == metric_cards(view_of([]))


def test_the_sentences_say_what_led_to_it():
    assert [
        "Trial t1 turned “compile” on (2026-09-23): whole jobs are 2.00x (1.90 to 2.10), "
        "from 3 short blocks.",
        "Since then production has trained 2 times with it and 1 time without.",
        "It has saved $8.00 in 2 runs, against $10.00 that the trial expected (80%).",
    ] == lede(bought())
    assert ["The latest trial (t2) ended with “turn it on: last”."] == lede(
        view_of([], decided("t1", "first"), decided("t2", "last.", "more"))
    )


@pytest.mark.parametrize(
    ("alarms", "said"),
    [
        ([], "(lr)."),
        ([2], "(lr)."),
        ([3], "(lr) and raised the alarm after 1 faulty run."),
        ([2, 5, 6], "(lr) and raised the alarm after 2 faulty runs."),
    ],
)
def test_the_alarm_of_a_fault_is_the_first_at_or_after_the_end_of_a_faulty_run(alarms, said):
    made = [
        production_run(n, details={"spec_key": "s"} if n in (3, 5, 6) else {}) for n in range(1, 8)
    ]
    reviews = [reviewed(n, "fell") for n in alarms] + [reviewed(4, "x", code="alarm_cleared")]
    text = lede(view_of(made, flag(1, 0, ON), *reviews, faults={"s": "lr"}))

    assert f"The fault was injected on purpose {said}" in text
