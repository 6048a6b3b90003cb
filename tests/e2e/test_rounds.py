"""Rounds of full runs: several candidates, runs asked for again, candidates lost on the way."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.e2e

TWO = [
    {"name": "compile", "compiler": "torch_compile"},
    {"name": "compile-b48", "compiler": "torch_compile", "batch_size": 48},
]


def test_after_one_candidate_crashed_the_other_is_asked_for_again_under_new_names(trial):
    running = trial(candidates=TWO, crash="compile", slow="compile-b48")

    found = running.wait()
    assert "SUCCEEDED" == found["status"], found.get("cause")
    decision = running.record("decision")
    assert ("promote", "compile-b48") == (decision["verdict"], decision["candidate"])
    ended = running.jobs()
    assert {"Completed", "Failed", "Stopped"} == set(ended.values())
