"""How it was measured: per arm, with history, at which error, and what production did."""

import json

import pytest

from compilegate.domain.codec import read
from compilegate.domain.formats import UNKNOWN
from compilegate.domain.records.trials import FlagOutcome
from compilegate.report.tables import protocol
from compilegate.usecases.reports import read_trial_report
from tests.report import samples
from tests.report.samples import rendered

RATE = 1.408  # USD per hour of the one device of the sample's cluster


def rows(source):
    return dict(protocol(read_trial_report(source)))


def hybrid(*, lost=False, verdict=None, hold=True):
    """A promotion whose runs after each arm's first were made by production."""
    source = samples.with_history()
    evidence, decision = source["evidence"], dict(source["decision"])
    evidence["policy"] |= {"quality_runs": "hybrid", "hold_models": hold}
    evidence["plan"] |= {"asked_quality_runs": "hybrid", "usd_by_job": {}}
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
    return source | {"evidence": evidence, "decision": decision}


def unpriced():
    source = hybrid()
    source["evidence"]["plan"]["usd_by_job"] = {}
    return source


def unregistered():
    source = samples.with_history()
    source["evidence"]["plan"] |= {
        "asked_quality_runs": "canary", "runs_as_shadow_because": "it is not registered",
    }  # fmt: skip
    return source


@pytest.mark.parametrize(
    ("source", "row", "value"),
    [
        (samples.promote, "Speed",
         "blocks of 160 steps: baseline 3, compile 3, compile-b48 1; at most 6 per arm"),
        (samples.with_history, "Quality",
         "full runs: baseline 3 (seeds 17 to 19), compile 3 (seeds 17 to 19); "
         "8 past runs, for the spread"),
        (samples.promote, "Error rate",
         "at most 0.05 in all: 0.025 per gate for each of 2 candidates, one-sided, shared by all "
         "its looks"),
        (samples.cheaper_cluster, "Thresholds",
         "whole jobs and short blocks proven above 1.10x, short blocks 1.20x or more on average, "
         "in dollars per run"),
        (hybrid, "Full runs made by",
         "the trial at first, then production as canary runs (hybrid)"),
        (hybrid, "Extra full runs", "compile 1; $0.70 and 0.5 GPU-hours"),
        (unpriced, "Extra full runs", f"compile 1; {UNKNOWN} and {UNKNOWN} GPU-hours"),
        (lambda: hybrid(lost=True), "Extra full runs", "compile 1; $1.41 and 1 GPU-hours"),
        (lambda: hybrid(lost=True), "Exposed", "no candidate model was made in production"),
        (unregistered, "Full runs made by",
         "the trial, as extra runs (shadow); policy asks for canary, but it is not registered"),
        (samples.promote, "Exposed", None),
    ],
)  # fmt: skip
def test_a_row_says_what_was_measured_and_is_left_out_where_nothing_was(source, row, value):
    assert rows(source()).get(row) == value


@pytest.mark.parametrize(
    ("changes", "flag", "words"),
    [
        ({"verdict": "promote"}, {}, "until this verdict released those of compile"),
        ({"verdict": "promote"}, {"approved": False}, "not released by this verdict"),
        ({"verdict": "continue"}, {}, "held back until the verdict"),
        ({"verdict": "promote", "hold": False}, {}, "not held back (policy.hold_models is false)"),
    ],
)
def test_it_says_what_production_was_exposed_to(changes, flag, words):
    exposed = rows(hybrid(**changes) | {"flag": read(FlagOutcome, flag)})["Exposed"]

    assert exposed.startswith("2 candidate models made in production")
    assert exposed.endswith(words)


def test_programs_get_the_same_figures():
    document = json.loads(rendered(hybrid()).json)["full_runs"]

    assert (document["asked"], document["used"]) == ("hybrid", "hybrid")
    assert (document["extra"]["runs"], document["production"]["runs"]) == (1, 5)
    assert document["extra"]["gpu_hours"] == pytest.approx(0.5)
    assert document["production"]["usd"] == pytest.approx(5 * RATE)
    assert json.loads(rendered(samples.promote()).json)["full_runs"] is None
