"""What becomes of a candidate's models, and of production, once the trial is over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate.usecases.canary import close_after_run, end_canary, release_models
from compilegate.usecases.trial.abort_trial import abort_trial
from tests.decision_builder import decision_document
from tests.domain.workload_builder import change
from tests.usecases.canary_builder import (
    CARRIED,
    begin,
    begun_round,
    ended_with,
    next_slot,
    open_round,
    produce,
    tag_of,
)
from tests.usecases.trial_builder import (
    EVENT,
)


def test_an_aborted_trial_gives_production_back_at_once_and_keeps_what_was_recorded(
    services: Any,
) -> None:
    begun_round(services)
    made = produce(services, "r1", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert next_slot(services) is None
    assert "aborted" == ended_with(services)
    entries = services.ledger.raw.entries("bert-docs")
    assert [made.job] == [entry["job"] for entry in entries if entry["kind"] == "run"]
    assert "rejected" == tag_of(services, made.job)


def test_models_that_cannot_be_tagged_do_not_keep_the_lease(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_round(services)
    produce(services, "r1", "compile", 0)

    def crash(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(services.jobs, "tag", crash)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)
    assert {} == services.locks.held


@pytest.mark.parametrize(
    ("verdict", "candidate", "enabled", "tag"),
    [
        ("promote", "compile", True, "released"),
        ("promote", "compile", False, "rejected"),  # a person did not approve
        ("promote", "another", True, "rejected"),
        ("stay_off", "compile", True, "rejected"),
        ("inconclusive", "compile", True, "rejected"),
    ],
)
def test_models_are_released_with_the_promotion_of_their_own_candidate_and_never_else(
    services: Any, verdict: str, candidate: str, enabled: bool, tag: str
) -> None:
    begun_round(services)
    mine = produce(services, "r1", "compile", 0)
    theirs = produce(services, "r2", "baseline", 1)
    decision = decision_document(verdict, candidate=candidate)
    services.store.put("decision.json", json.dumps(decision).encode())
    event = {**EVENT, "decision_key": "decision.json", "flag_enabled": enabled}
    answer = release_models(event, services=services)

    assert tag == tag_of(services, mine.job)
    assert [mine.job] == answer[tag]
    assert tag_of(services, theirs.job) is None


def test_where_policy_holds_no_models_none_is_tagged(services: Any) -> None:
    open_round(services, begin(services, change(CARRIED, policy__hold_models=False)))
    mine = produce(services, "r1", "compile", 0)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert tag_of(services, mine.job) is None


def test_a_model_that_comes_after_its_trial_was_given_up_is_rejected(services: Any) -> None:
    begun_round(services)
    abort_trial({**EVENT, "error": "Stopped", "cause": ""}, services=services)

    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)
    assert tag_of(services, produce(services, "r2", "baseline", 1).job) is None


@pytest.mark.parametrize("ended", ["lost", "changed", "retired"])
def test_a_model_that_comes_after_its_round_had_ended_is_rejected(
    services: Any, ended: str
) -> None:
    """The round ended while it was on its way; whatever its trial says later tags it anew."""
    begun_round(services)
    if ended == "lost":
        produce(services, "r0", "compile", 0, result={"finished": False, "metric": None})
    elif ended == "changed":
        produce(services, "r0", "baseline", None, job="another")
    else:
        end_canary("bert-docs", services=services)

    assert ended == ended_with(services)
    assert "rejected" == tag_of(services, produce(services, "r1", "compile", 0).job)


def test_the_run_that_completes_a_round_keeps_its_tag_however_often_it_is_recorded(
    services: Any,
) -> None:
    begun_round(services)
    produce(services, "r1", "baseline", 1)
    made = produce(services, "r2", "compile", 0)
    close_after_run("bert-docs", made, job=None, services=services)

    assert "complete" == ended_with(services)
    assert tag_of(services, made.job) is None
