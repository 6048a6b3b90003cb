"""How it was measured: per arm, at which error, and what production did."""

from types import SimpleNamespace as Made

import pytest

from compilegate.domain.decision import Verdict
from compilegate.domain.formats import UNKNOWN
from compilegate.report.tables import full_runs, protocol
from tests.report.test_tables import TRIAL, arm, full, speed, trial

HYBRID = "the trial at first, then production as canary runs (hybrid)"


def hybrid(*, prices=(3.0, 4.0, 8.0), rate=4.0, **policy):
    """Each arm's first run was the trial's; production lost a run of each, and made three more."""
    made = trial(
        arm("baseline", speed(0, step_seconds=(1.0, 2.0, 4.0)), full(seed=17, job="b"),
            full("canary", seed=18, usd=1.0, finished=False), usd_per_hour=2.0, devices=1),
        arm("compile", speed(0, step_seconds=(1.0,)), speed(1), full(seed=17, job="c"),
            full("canary", seed=18, usd=2.0, finished=False, job="lost"),
            full("canary", seed=19, usd=5.0), full("canary", seed=20, usd=0.0),
            full("production", seed=21, usd=7.0, finished=False),
            usd_per_hour=rate, devices=8),
        arm("other"),
        plan=Made(max_blocks=6), price_ratio=1.5,
        usd_by_job=dict(zip(("b", "c", "lost"), prices, strict=True)),
    )  # fmt: skip
    vars(made.evidence.policy).update({"quality_runs": "hybrid", **policy})
    made.evidence.quality.history = [1.5, 1.25]
    return made


def test_each_row_says_what_was_measured_and_at_which_error():
    """The lost candidate's run costs extra: 3 + 4 + 8 dollars, and 1.5 x 1 + (1 + 2) x 8 hours."""
    rows = [
        ("Speed", "blocks of 3 steps: baseline 1, compile 2, other 0; at most 6 per arm"),
        ("Quality", "full runs: baseline 2 (seeds 17, 18), compile 5 (seeds 17 to 21); "
         "2 past runs, for the spread"),
        ("Full runs made by", HYBRID),
        ("Extra full runs", "baseline 1, compile 1; $15.00 and 25.5 GPU-hours"),
        ("Canary and production runs", "baseline 1 as canary, compile 3 as canary, "
         "compile 1 in production; $13.00 and 24.5 GPU-hours"),
        ("Exposed", "2 candidate models made in production, held back until this verdict released "
         "those of compile"),
        ("Thresholds", "whole jobs and short blocks proven above 1.10x, short blocks 1.20x or more "
         "on average, in dollars per run"),
        ("Error rate", "at most 0.04 in all: 0.02 per gate for each of 2 candidates, one-sided, "
         "shared by all its looks"),
        ("Judge", "1.2.0"), ("Decision", "d1"), ("Trial", TRIAL), ("Stage", "local"),
    ]  # fmt: skip

    assert rows == protocol(hybrid())
    assert {
        "asked": "hybrid", "used": "hybrid", "made_by": HYBRID, "exposed": rows[5][1],
        "extra": {"runs": 2, "usd": 15.0, "gpu_hours": 25.5},
        "production": {"runs": 5, "usd": 13.0, "gpu_hours": 24.5},
    } == full_runs(hybrid())  # fmt: skip


def test_what_never_happened_is_left_out():
    plain = trial(arm("baseline"), arm("compile"))
    plain.evidence.policy.quality_runs = "hybrid"
    rows = ["Quality", "Thresholds", "Error rate", "Judge", "Decision", "Trial", "Stage"]

    assert (rows, ("Quality", "no full run")) == (
        [name for name, _ in protocol(plain)], protocol(plain)[0],
    )  # fmt: skip
    assert rows[3:] == [name for name, _ in protocol(trial())]
    assert [None, None] == [full_runs(plain), full_runs(trial())]


@pytest.mark.parametrize("unknown", [{"prices": (3.0, None, 8.0)}, {"rate": None}])
def test_a_sum_of_which_a_part_is_unknown_is_unknown(unknown):
    (extra,) = (text for name, text in protocol(hybrid(**unknown)) if name == "Extra full runs")

    assert extra.endswith(f"; {UNKNOWN} and {UNKNOWN} GPU-hours")


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([17], "1 (seed 17)"), ([18, 17], "2 (seeds 17, 18)"), ([17, 18, 19], "3 (seeds 17 to 19)"),
        ([17, 19, 20], "3 (seeds 17, 19, 20)"), ([17, 17], "2"), ([17, None], "2"),
    ],
)  # fmt: skip
def test_an_arms_runs_are_named_by_their_seeds(seeds, words):
    made = trial(arm("baseline", *(full(seed=seed) for seed in seeds)), arm("compile"))

    assert ("Quality", f"full runs: baseline {words}") == protocol(made)[0]


@pytest.mark.parametrize(
    ("asked", "used", "why", "words"),
    [
        (None, "shadow", None, None), ("shadow", "shadow", None, None),
        ("canary", "shadow", "it is not registered", "the trial, as extra runs (shadow); policy "
         "asks for canary, but it is not registered"),
        ("hybrid", "canary", None, "production, as canary runs; policy asks for hybrid"),
        (None, "canary", None, "production, as canary runs"),
    ],
)  # fmt: skip
def test_who_made_the_full_runs_is_said_unless_it_was_the_trial_as_asked(asked, used, why, words):
    made = trial(arm("baseline", full()), arm("compile"))
    made.evidence.policy.quality_runs = used
    made.evidence.plan = Made(asked_quality_runs=asked, runs_as_shadow_because=why)
    document = full_runs(made)

    assert dict(protocol(made)).get("Full runs made by") == words
    assert (document and (document["asked"], document["used"], document["made_by"])) == (
        (asked or used, used, words) if words else None
    )


@pytest.mark.parametrize(
    ("verdict", "flag", "hold", "words"),
    [
        (Verdict.PROMOTE, Made(was_held=True), True, "not released by this verdict"),
        (Verdict.STAY_OFF, None, True, "not released by this verdict"),
        (Verdict.CONTINUE, None, True, "held back until the verdict"),
        (Verdict.PROMOTE, None, False, "not held back (policy.hold_models is false)"),
    ],
)
def test_it_says_what_production_was_exposed_to(verdict, flag, hold, words):
    made = hybrid(hold_models=hold)
    made.verdict, made.flag = verdict, flag

    assert dict(protocol(made))["Exposed"].endswith(words)


def test_no_model_of_a_lost_candidate_is_exposed():
    lost = trial(arm("baseline", full("canary")), arm("compile", full("canary", finished=False)))

    assert "no candidate model was made in production" == dict(protocol(lost))["Exposed"]
