"""Lock and plan: what a trial is refused for before it has cost anything."""

from __future__ import annotations

import dataclasses
import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.facts import Quota
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.workload.model import Schedule
from compilegate.ports import Services
from compilegate.usecases import planning
from compilegate.usecases.planning import check_eligibility, plan_for, plan_trial
from compilegate.usecases.records import Trial, facts_for_workload, save_decision, to_json
from compilegate.usecases.trial.abort_trial import abort_trial
from compilegate.usecases.trial.lock import acquire_lock
from tests.decision_builder import arm_figures
from tests.domain.workload_builder import SOUND, change
from tests.fakes import FixedQuotas, start_job
from tests.usecases.trial_builder import EVENT, SPEC, TRIAL, put_spec, says

KIND = SOUND.training.instance_type


def with_quota(services: Services, instances: int) -> Services:
    return dataclasses.replace(services, quotas=FixedQuotas({KIND: instances}))


def recorded(services: Services, key: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(services.store.get(key))
    return document


def test_a_job_that_the_quota_does_not_hold_ends_the_trial_before_it_starts(
    services: Services,
) -> None:
    answer = plan_trial(EVENT, services=with_quota(services, 0))
    decision = recorded(services, answer["decision_key"])
    (reason,) = decision["reasons"]

    assert (f"{EVENT['trial']}-refused", "plan", "inconclusive") == (
        decision["decision_id"], decision["stage"], decision["verdict"],
    )  # fmt: skip
    assert ("inconclusive", "quota_too_low") == (answer["verdict"], reason["code"])
    assert f"{KIND} for training job usage" in reason["fix"]


def test_spot_jobs_have_a_quota_of_their_own(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = {(KIND, True): Quota(KIND, True, 3, "2026-11-01", "the account")}
    facts = replace(facts_for_workload(SOUND, services.settings), quotas=quotas)
    monkeypatch.setattr(planning.records, "facts_for_workload", lambda *_: facts)
    plan = plan_for(change(SOUND, training__spot=True), services.settings)

    assert isinstance(plan, Plan)
    assert [3] == [need.quota for need in plan.quotas]


# Each fits by itself, all of an arm's in a speed job's one value do not.
TOO_MUCH_TOGETHER = {f"h{n}": "x" * 900 for n in range(3)}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"training__hyperparameters": {"prompt": "x" * 2600}}, "training.hyperparameters.prompt"),
        ({"training__hyperparameters": {f"h{n}": n for n in range(101)}},
         "training.hyperparameters"),
        ({"training__hyperparameters": TOO_MUCH_TOGETHER}, "training.hyperparameters.h0"),
        ({"training__environment": {"A-B": "1"}}, "training.environment"),
        ({"training__environment": {"A": "x" * 513}}, "training.environment"),
        ({"training__inputs": {"my data": "s3://corpus/k/"}}, "training.inputs"),
        ({"training__inputs": {f"c{n}": "s3://corpus/k/" for n in range(21)}}, "training.inputs"),
        ({"tags": {"a&b": "c"}}, "tags or owner"),
        ({"tags": {"cost": "x" * 257}}, "tags or owner"),
        ({"tags": {f"t{n}": "v" for n in range(45)}}, "tags or owner"),
        ({"tags": {"aws:mine": "v"}}, "tags.aws:mine"),
        ({"owner": "me & you"}, "tags or owner"),
        ({"quality__metric": "m" * 256}, "a metric of quality"),
    ],
)  # fmt: skip
def test_what_the_service_would_refuse_is_refused_at_planning(
    services: Services, changes: dict[str, Any], field: str
) -> None:
    """The parser refuses much of it earlier; the plan relies on no parser."""
    refused = plan_for(change(SOUND, **changes), services.settings)

    assert isinstance(refused, Reason)
    assert "request_refused" == refused.code
    assert refused.message.startswith(f"{field}: ")
    assert "Fix: " in refused.message


def test_the_refusal_is_recorded_before_anything_is_spent(services: Services) -> None:
    put_spec(services, change(SOUND, training__hyperparameters=TOO_MUCH_TOGETHER))
    answer = plan_trial(EVENT, services=services)

    assert ("inconclusive", None) == (answer["verdict"], answer["plan_key"])
    (reason,) = json.loads(services.store.get(answer["decision_key"]))["reasons"]
    assert "request_refused" == reason["code"]
    assert "as a speed job carries them" in reason["message"]


def test_a_workload_whose_name_ends_like_the_trials_id_keeps_its_jobs(services: Any) -> None:
    """``bert-docs-ID`` is a name that a workload may have; its jobs begin like the trial's."""
    acquire_lock(EVENT, services=services)
    foreign = start_job(services, f"bert-docs-{TRIAL}", "0mabc123", "q1a17")
    abort_trial({**EVENT, "error": "States.Timeout", "cause": ""}, services=services)

    assert "InProgress" == services.jobs.describe(foreign)["TrainingJobStatus"]


# What earlier trials measured decides whether a short run may be compiled.


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
