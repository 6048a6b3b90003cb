"""Lock and plan: what a trial is refused for before it has cost anything."""

from __future__ import annotations

import dataclasses
import json
import logging
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from compilegate.domain import naming
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.facts import Quota
from compilegate.domain.notes import SCRIPT_COMPILES, Note
from compilegate.domain.planning.plan import Plan
from compilegate.domain.reasons import Reason
from compilegate.domain.records.trials import TrialDecided
from compilegate.domain.workload.model import Schedule
from compilegate.ports import Services
from compilegate.usecases import planning, records
from compilegate.usecases.planning import check_eligibility, past_overheads, plan_for, plan_trial
from compilegate.usecases.records import Trial, facts_for_workload, save_decision, to_json
from tests.decision_builder import arm_figures
from tests.domain.workload_builder import SOUND, change
from tests.fakes import FixedQuotas
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


GOES_ON = {"benchmark", "continue"}


def verdicts(services: Any) -> tuple[str, str]:
    """What check and plan say of the short run; where it does not go on, that is the decision."""
    put_spec(services, SHORT)
    answers = [step(EVENT, services=services) for step in (check_eligibility, plan_trial)]
    assert all((one["verdict"] in GOES_ON) is (one["decision_key"] is None) for one in answers)
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


@pytest.mark.parametrize("document", ["plan", "decision"])
@pytest.mark.parametrize("trial", ["00000001", "00000002"])
@pytest.mark.parametrize("content", [None, UNREADABLE["another schema"]])
def test_other_trials_still_count_where_one_cannot_be_read(
    services: Any, trial: str, document: str, content: bytes | None
) -> None:
    decided(services, "00000001", warm=4.0)
    decided(services, "00000002", warm=4.0)
    key = naming.record_key("bert-docs", trial, document)
    if content is None:
        services.store.objects.pop(key)
    else:
        services.store.put(key, content)

    assert ("benchmark", "continue") == verdicts(services)


def test_the_last_three_decided_trials_are_read_oldest_first(services: Any) -> None:
    for number in (4, 1, 3, 2):
        decided(services, f"0000000{number}", warm=float(number))
    read = past_overheads("bert-docs", services.ledger.history("bert-docs"), services.store)

    assert [("00000002", 2.0), ("00000003", 3.0), ("00000004", 4.0)] == [
        (one.trial, one.warm_seconds) for one in read
    ]


def test_nothing_is_tried_in_a_region_that_has_no_image(services: Any) -> None:
    there = replace(services.settings, region="us-gov-west-1")
    answer = check_eligibility(EVENT, services=replace(services, settings=there))
    refused = plan_for(SOUND, there)

    assert isinstance(refused, Reason)
    assert ("ineligible", "ineligible") == (answer["verdict"], refused.code)
    assert TRIAL in recorded(services, answer["decision_key"])["decision_id"]


def test_the_service_is_asked_about_the_longest_names_that_jobs_may_get(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Mock()
    monkeypatch.setattr(planning, "request_limits", lambda: limits)
    plan_for(SOUND, services.settings)
    speed, *quality = [call.args[0] for call in limits.check.call_args_list]
    source = f"s3://{'b' * 63}/workloads/bert-docs/source/{'d' * 64}/sourcedir.tar.gz"
    # A state machine and an execution have names of at most 80 characters.
    execution = f"arn:aws:states:us-gov-west-1:123456789012:execution:{'e' * (80 + 1 + 80)}"

    assert ["s999a10", "q999a9999999999", "q999b9999999999"] == [
        one["TrainingJobName"].removeprefix("cg-bert-docs-tttttttt-") for one in (speed, *quality)
    ]
    assert {"first_block": "10", "blocks": "1"}.items() <= speed["HyperParameters"].items()
    for request in (speed, *quality):
        assert json.dumps(source) == request["HyperParameters"]["sagemaker_submit_directory"]
        assert {"Key": "compilegate:execution", "Value": execution} in request["Tags"]
    for request in quality:
        assert {"seed": "9999999999", "replicate": "999"}.items() <= (
            request["HyperParameters"].items()
        )


def test_spreads_are_learned_of_the_baselines_machine_and_jobs_have_their_role(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Mock(side_effect=planning.learned_spreads)
    monkeypatch.setattr(planning, "learned_spreads", asked)
    elsewhere = replace(SOUND.candidates[0], instance_type="ml.p4d.24xlarge")
    put_spec(services, change(SOUND, candidates=(elsewhere,)))
    plan_trial(EVENT, services=services)
    arms = records.load_plan(services.store, Trial("bert-docs", TRIAL, SPEC)).arms

    assert [KIND, "ml.p4d.24xlarge"] == [arm.instance_type for arm in arms]
    assert ("bert-docs", KIND) == asked.call_args.args
    assert ["bert-docs"] == services.roles.made


def test_of_several_problems_of_a_request_the_first_is_the_reason(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = InvalidInputError("both")
    both.each = (InvalidInputError("one"), InvalidInputError("two"))
    monkeypatch.setattr(planning, "check_script_arguments", Mock(side_effect=both))

    assert Reason("request_refused", "one.") == plan_for(SOUND, services.settings)


def test_a_plan_has_the_notes_of_its_job_and_its_cost_in_hundredths_of_a_cent(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Note(SCRIPT_COMPILES, {"script": "a.py", "line": 3, "source": "b"})
    spec = replace(
        records.load_spec(services.store, Trial("bert-docs", TRIAL, SPEC)), notes=(note,)
    )
    monkeypatch.setattr(records, "load_spec", lambda *_: spec)
    exact = plan_for(SOUND, services.settings)
    answer = plan_trial(EVENT, services=services)
    plan = records.load_plan(services.store, Trial("bert-docs", TRIAL, SPEC))

    assert isinstance(exact, Plan)
    assert round(exact.estimate.usd, 4) == answer["estimated_usd"] != exact.estimate.usd
    assert (note,) == plan.notes
