"""Who made the full runs, what was paid beyond production's own, what production met of it."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.formats import UNKNOWN
from compilegate.report.protocol import protocol
from compilegate.report.render import render
from compilegate.report.tables import canary_table
from compilegate.report.trial_report import read_trial_report
from tests.report import stories

RATE = 1.408  # USD per hour of the one device of the story's cluster


def story(*, mode="hybrid", lost=False, verdict=None, hold=True):
    """A promotion whose runs after each arm's first were made by production."""
    found = stories.with_history()
    evidence, decision = found["evidence"], dict(found["decision"])
    evidence["policy"] |= {"quality_runs": mode, "hold_models": hold}
    evidence["plan"] |= {"asked_quality_runs": mode, "usd_by_job": {}}
    for arm in evidence["arms"]:
        made = [run for run in arm["runs"] if run["stage"] == "quality"]
        for number, run in enumerate(made):
            run["job"] = f"job-{arm['name']}-{number}"
            if number == 0 and arm["name"] == "compile":
                evidence["plan"]["usd_by_job"][run["job"]] = RATE / 2
                continue
            run |= {"mode": "canary", "usd": RATE, "started_at": 1_790_000_000.0 + number}
            if lost and arm["name"] == "compile":
                run |= {"finished": False, "metric": None, "usd": RATE / 4}
                evidence["plan"]["usd_by_job"][run["job"]] = RATE / 4
    if verdict:
        decision["verdict"] = verdict
    return found | {"evidence": evidence, "decision": decision}


def rows(found):
    return dict(protocol(read_trial_report(found)))


def test_the_protocol_says_who_made_the_runs_and_what_was_extra():
    found = rows(story())

    assert (
        "the trial at first, then production as canary runs (hybrid)"
        == (found["Full runs made by"])
    )
    assert "compile 1; $0.70 and 0.5 GPU-hours" == found["Extra full runs"]
    assert (
        "baseline 1 as canary, compile 1 as canary; $2.82 and 2 GPU-hours"
        == (found["Canary and production runs"])
    )


def test_a_lost_candidates_night_is_extra_and_no_longer_a_canary_run():
    found = rows(story(lost=True))

    assert found["Extra full runs"].endswith("$1.06 and 0.75 GPU-hours")
    assert found["Canary and production runs"].endswith("$1.41 and 1 GPU-hours")
    assert "no candidate model was made in production" == found["Exposed"]


def test_an_unknown_price_is_a_dash_and_never_nothing():
    unknown = story()
    unknown["evidence"]["plan"]["usd_by_job"] = {}

    assert rows(unknown)["Extra full runs"].endswith(f"{UNKNOWN} and {UNKNOWN} GPU-hours")


@pytest.mark.parametrize(
    ("changes", "flag", "told"),
    [
        ({"verdict": "promote"}, {}, "until this verdict released those of compile"),
        ({"verdict": "promote"}, {"approved": False}, "not released by this verdict"),
        ({"verdict": "stay_off"}, {}, "not released by this verdict"),
        ({"verdict": "inconclusive"}, {}, "not released by this verdict"),
        ({"verdict": "continue"}, {}, "held back until the verdict"),
        ({"verdict": "promote", "hold": False}, {}, "not held back"),
    ],
)
def test_it_says_what_production_was_exposed_to(changes, flag, told):
    exposed = rows(story(**changes) | {"flag": flag})["Exposed"]

    assert exposed.startswith("1 candidate model made in production")
    assert exposed.endswith(told) or told in exposed


def test_a_trial_that_ran_otherwise_than_policy_asks_says_why():
    found = stories.with_history()
    found["evidence"]["plan"] |= {
        "asked_quality_runs": "canary", "runs_as_shadow_because": "nobody registered it",
    }  # fmt: skip

    told = rows(found)
    assert (
        "the trial, as extra runs (shadow); policy asks for canary, but nobody registered it"
        == (told["Full runs made by"])
    )
    assert "Exposed" not in told


def test_a_trial_as_policy_asks_that_made_all_runs_itself_says_nothing_of_production():
    assert not {"Full runs made by", "Exposed"} & rows(stories.promote()).keys()


def test_every_production_run_is_listed_in_the_order_of_time():
    table = canary_table(read_trial_report(story()).measured)

    assert [("baseline", "as canary"), ("compile", "as canary")] == [
        (row[1], row[4]) for row in table.rows
    ]
    assert all(row[0].startswith("2026-") for row in table.rows)
    assert canary_table(read_trial_report(stories.promote()).measured) is None


def test_the_page_shows_both():
    html = render(story()).html

    assert "Canary and production runs used as evidence" in html
    assert "Canary and production runs" in html


def test_programs_get_the_same_figures():
    told = json.loads(render(story()).json)["full_runs"]

    assert ("hybrid", "hybrid", 1, 2) == (
        told["asked"], told["used"], told["extra"]["runs"], told["carried"]["runs"],
    )  # fmt: skip
    assert pytest.approx(0.5) == told["extra"]["gpu_hours"]
    assert pytest.approx(2 * RATE) == told["carried"]["usd"]
    assert json.loads(render(stories.promote()).json)["full_runs"] is None
