"""What earlier trials measured decides whether a short run may be compiled."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.workload.model import Schedule
from compilegate.usecases.planning import past_overheads
from compilegate.usecases.records import Trial, save_decision, to_json
from compilegate.usecases.trial.check_eligibility import check_eligibility
from compilegate.usecases.trial.plan_trial import plan_trial
from tests.decision_builder import arm_figures
from tests.domain.workload_builder import SOUND, change
from tests.usecases.trial_builder import EVENT, SPEC, put_spec, says

SHORT = change(SOUND, schedule=Schedule(runs_per_week=3000, run_hours=0.02))


def decided(services: Any, trial: str, *, warm: float | None, **plan: Any) -> None:
    """A trial in the ledger whose candidate took ``warm`` seconds to compile."""
    put_spec(services, SOUND)
    plan_trial({**EVENT, "trial": trial}, services=services)
    key = naming.record_key("bert-docs", trial, "plan")
    document = json.loads(services.store.get(key))
    document["arms"][1] |= plan
    services.store.put(key, to_json(document))
    arms = (
        arm_figures(name="baseline", compile_seconds_warm=0.0),
        arm_figures(name="compile", compile_seconds_warm=warm),
    )
    decided_so = replace(says("promote"), arms=arms)
    decision = save_decision(
        services.store, Trial("bert-docs", trial, SPEC), decided_so, stage="prod"
    )
    entry = TrialDecided(1, trial, "promote", decision).to_entry()
    services.ledger.raw.put_once("bert-docs", f"trial#{trial}#decision", entry)


def verdicts(services: Any) -> tuple[str, str]:
    """What check and plan say of the short run."""
    put_spec(services, SHORT)
    answers = [step(EVENT, services=services) for step in (check_eligibility, plan_trial)]
    return answers[0]["verdict"], answers[1]["verdict"]


def test_a_short_run_of_unknown_overhead_is_ineligible(services: Any) -> None:
    assert ("ineligible", "inconclusive") == verdicts(services)


def test_what_an_earlier_trial_measured_makes_it_worth_a_benchmark(services: Any) -> None:
    decided(services, "00000001", warm=4.0)

    assert ("benchmark", "continue") == verdicts(services)
    document = json.loads(services.store.get(naming.record_key("bert-docs", EVENT["trial"],
                                                               "eligibility")))  # fmt: skip
    assert pytest.approx(0.2) == document["economics"]["break_even_run_minutes"]
    assert any(
        "measured in trial 00000001" in text for text in document["economics"]["assumptions"]
    )


def test_the_newest_trial_counts(services: Any) -> None:
    decided(services, "00000001", warm=4.0)
    decided(services, "00000002", warm=40.0)

    assert ("ineligible", "inconclusive") == verdicts(services)


@pytest.mark.parametrize("plan", [{"image": "another"}, {"compile_mode": "max-autotune"},
                                  {"compiler": "sagemaker_training_compiler"}])  # fmt: skip
def test_another_image_compiler_or_mode_tells_nothing(services: Any, plan: dict[str, str]) -> None:
    decided(services, "00000001", warm=4.0, **plan)

    assert ("ineligible", "inconclusive") == verdicts(services)


def test_a_trial_without_times_or_documents_tells_nothing(services: Any) -> None:
    decided(services, "00000001", warm=None)
    entry = TrialDecided(1, "00000002", "promote", "decisions/gone.json").to_entry()
    services.ledger.raw.put_once("bert-docs", "trial#00000002#decision", entry)
    services.ledger.raw.put_once("bert-docs", "trial#00000003#other", {"kind": "other"})

    past = services.ledger.history("bert-docs")
    assert () == past_overheads("bert-docs", past, services.store)


UNREADABLE = {
    "another schema": b'{"schema": 2, "arms": []}',
    "a missing key": b'{"schema": 1, "arms": [{"name": "baseline"}]}',
    "no object": b"[]",
    "no JSON": b"{",
}


@pytest.mark.parametrize("document", ["plan", "decision"])
@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_an_old_document_that_cannot_be_read_stops_no_new_trial_and_is_logged(
    services: Any, content: bytes, document: str, caplog: pytest.LogCaptureFixture
) -> None:
    decided(services, "00000001", warm=4.0)
    services.store.put(naming.record_key("bert-docs", "00000001", document), content)

    with caplog.at_level(logging.WARNING):
        assert ("ineligible", "inconclusive") == verdicts(services)
    assert "00000001" in caplog.text


def test_other_trials_still_count_where_one_cannot_be_read(services: Any) -> None:
    decided(services, "00000001", warm=4.0)
    decided(services, "00000002", warm=4.0)
    key = naming.record_key("bert-docs", "00000002", "plan")
    services.store.put(key, UNREADABLE["another schema"])

    assert ("benchmark", "continue") == verdicts(services)


def test_the_last_three_trials_count_the_oldest_first(services: Any) -> None:
    for number, warm in enumerate((4.0, 5.0, 7.0, 11.0, 16.0), start=1):
        decided(services, f"0000000{number}", warm=warm)
    past = services.ledger.history("bert-docs")
    measured = past_overheads("bert-docs", past, services.store)

    assert [7.0, 11.0, 16.0] == [one.warm_seconds for one in measured]
