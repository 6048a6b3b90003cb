"""Trials end as the evidence says: the deployed state machine, the real Lambdas, real jobs."""

from __future__ import annotations

import json

import pytest

from tests.domain.evidence_builder import judge

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("settings", "verdict", "reason"),
    [
        ({"loss_shift": 0.2}, "stay_off", None),
        ({"nan": "compile"}, "stay_off", None),
        ({"unapplied": "compile"}, "invalid", None),
        ({"framework": {"name": "xgboost", "version": "1.7-1"}}, "ineligible", None),
        ({"policy": {"max_trial_usd": 0.01}}, "inconclusive", "trial_over_budget"),
    ],
    ids=["worse quality", "diverges", "not applied", "ineligible", "over the cap"],
)
def test_the_flag_stays_as_it_was(trial, settings, verdict, reason):
    running = trial(**settings)
    decision = running.decision()

    assert verdict == decision["verdict"]
    assert reason in (None, decision["reasons"][0]["code"])
    assert running.flag() is None
    if settings.keys() & {"framework", "policy"}:
        assert {} == running.jobs(), "it must cost nothing"


def test_a_loser_goes_no_further_than_the_speed_gate(trial):
    running = trial(speedup=0.9)

    assert "stay_off" == running.decision()["verdict"]
    assert {"s0-r0"} == set(running.jobs())


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
