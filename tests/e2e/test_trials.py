"""Trials end as the evidence says: the deployed state machine, the real Lambdas, real jobs."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from compilegate.domain import naming
from tests.domain.evidence_builder import judge

pytestmark = pytest.mark.e2e
TWO = [
    {"name": "compile", "compiler": "torch_compile"},
    {"name": "compile-b48", "compiler": "torch_compile", "batch_size": 48},
]
BASELINE, FIRST = 0, 1


UNCHANGED = {
    "worse quality": ({"loss_shift": 0.2}, "stay_off", None),
    "baseline crashes": ({"crash": "baseline"}, "inconclusive", None),
    "not applied": ({"unapplied": "compile"}, "invalid", None),
    "half the steps": ({"half": "compile"}, "invalid", "unequal_work"),
    "ineligible": ({"framework": {"name": "xgboost", "version": "1.7-1"}}, "ineligible", None),
    "over the cap": ({"policy": {"max_trial_usd": 0.01}}, "inconclusive", "trial_over_budget"),
}


@pytest.mark.parametrize(("settings", "verdict", "reason"), UNCHANGED.values(), ids=UNCHANGED)
def test_the_flag_stays_as_it_was(trial, settings, verdict, reason):
    running = trial(**settings)
    decision = running.decision()

    assert verdict == decision["verdict"]
    assert reason in (None, decision["reasons"][0]["code"])
    assert running.flag() is None
    if settings.keys() & {"framework", "policy"}:
        assert {} == running.jobs(), "it must cost nothing"


def test_a_promotion_is_replayed_reported_and_reverted_by_a_later_proven_loss(trial):
    first = trial()
    recorded = first.decision()
    again = judge(first.record("evidence")).to_dict(recorded["flag"]["name"])

    assert first.flag()["enabled"]
    assert json.loads(json.dumps(again)) == {k: v for k, v in recorded.items() if k != "trial"}
    for extension, start in (("html", "<!doctype html>"), ("md", "#"), ("json", "{")):
        assert first.report(extension).lstrip().lower().startswith(start)

    second = trial(name=first.workload, speedup=0.9)

    assert "stay_off" == second.decision()["verdict"]
    assert not second.flag()["enabled"]


def ends(running):
    """How the full runs of each arm ended, by round."""
    counts = {}
    for job, status in running.jobs().items():
        run = naming.job_run(running.workload, running.trial, running.job(job))
        if not run.is_speed:
            counts.setdefault((run.round_number, run.arm_index), Counter())[status] += 1
    return counts


def test_a_trial_continues_round_by_round_until_it_is_decided(trial):
    running = trial(noise=0.02)
    decision = running.decision()

    rounds = {round_number for round_number, _ in ends(running)}
    assert len(rounds) > 1
    assert "promote" == decision["verdict"], decision["reasons"]
    runs = running.record("evidence")["arms"][FIRST]["runs"]
    seeds = [run["seed"] for run in runs if run["stage"] == "quality"]
    assert len(seeds) == len(set(seeds)) == decision["quality"]["runs"]["candidate"]


def test_a_candidate_that_is_lost_stops_what_is_still_running(trial):
    running = trial(nan="compile", slow="baseline")

    assert "stay_off" == running.decision()["verdict"]
    counts = ends(running)
    assert {"Stopped"} == {
        status for (_, arm), c in counts.items() if arm == BASELINE for status in c
    }
    assert {"started", "decision"} == set(running.entries())


def test_a_lost_candidate_is_stopped_while_the_baseline_runs_on_for_the_next(trial):
    """Without the baseline's runs the next one would have to be measured again."""
    running = trial(candidates=TWO, behind="compile-b48", nan="compile", slow="compile",
                    slow_seed=18)  # fmt: skip
    decision = running.decision()

    assert ("promote", "compile-b48") == (decision["verdict"], decision["candidate"])
    counts = ends(running)
    assert {"Completed": 1, "Stopped": 1} == counts[min(counts)[0], FIRST]
    assert {"Completed"} == {s for (_, arm), c in counts.items() if arm != FIRST for s in c}
