"""Rounds of full runs: asked for again, one after the other, ended early."""

from __future__ import annotations

from collections import Counter

import pytest

from compilegate.domain import naming

pytestmark = pytest.mark.e2e
TWO = [
    {"name": "compile", "compiler": "torch_compile"},
    {"name": "compile-b48", "compiler": "torch_compile", "batch_size": 48},
]
BASELINE, FIRST, SECOND = 0, 1, 2


def ends(running):
    """How the full runs of each arm ended, by round."""
    found = {}
    for job, status in running.jobs().items():
        run = naming.job_run(running.workload, running.trial, running.job(job))
        if not run.is_speed:
            found.setdefault((run.round_number, run.arm_index), Counter())[status] += 1
    return found


def test_a_candidates_crash_leaves_the_baselines_runs_to_the_next_candidate(trial):
    running = trial(candidates=TWO, behind="compile-b48", crash="compile", slow="baseline")
    decision = running.decision()

    assert ("promote", "compile-b48") == (decision["verdict"], decision["candidate"])
    found = ends(running)
    assert "Failed" in found[min(found)[0], FIRST]
    assert {"Completed"} == {s for (_, arm), c in found.items() if arm != FIRST for s in c}


def test_a_trial_goes_on_round_by_round_until_it_is_settled(trial):
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
    found = ends(running)
    assert {"Stopped"} == {
        status for (_, arm), c in found.items() if arm == BASELINE for status in c
    }
    assert {"started", "decision"} == set(running.entries())


def test_a_lost_candidate_is_stopped_while_the_baseline_runs_on_for_the_next(trial):
    running = trial(candidates=TWO, behind="compile-b48", nan="compile", slow="compile",
                    slow_seed=18)  # fmt: skip
    decision = running.decision()

    assert ("promote", "compile-b48") == (decision["verdict"], decision["candidate"])
    found = ends(running)
    assert {"Completed": 1, "Stopped": 1} == found[min(found)[0], FIRST]
    assert {"Completed"} == {s for (_, arm), c in found.items() if arm != FIRST for s in c}
