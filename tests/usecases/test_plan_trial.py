"""PlanTrial: what it records, and what the account's quotas do to it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from compilegate.domain.workload.model import Candidate, Framework
from compilegate.ports import Services
from compilegate.usecases.trial.plan_trial import plan_trial
from tests.domain.workload_builder import COMPILE, SOUND, change
from tests.fakes import FixedQuotas
from tests.usecases.trial_builder import EVENT, put_spec

KIND = SOUND.training.instance_type
PAIR = Candidate(
    name="pair",
    compiler="sagemaker_training_compiler",
    distribution="pytorchxla",
    framework=Framework("pytorch", "1.13.1", None, "py39"),
)


def with_quota(services: Services, instances: int) -> Services:
    return dataclasses.replace(services, quotas=FixedQuotas({KIND: instances}))


def recorded(services: Services, key: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(services.store.get(key))
    return found


def test_the_record_says_of_every_arm_what_it_is_why_it_is_there_and_what_it_changes(
    services: Services,
) -> None:
    workload = change(SOUND, candidates=(COMPILE, PAIR), policy__max_trial_usd=1e5)
    put_spec(services, workload)
    plan = recorded(services, plan_trial(EVENT, services=services)["plan_key"])

    assert [
        ("baseline", "baseline", "as it runs today"),
        ("compile", "candidate", "one factor: compiler"),
        ("pair", "candidate", "bundle of compiler and framework"),
        ("pair-native", "control", "one factor: framework"),
    ] == [(arm["name"], arm["role"], arm["label"]) for arm in plan["arms"]]
    assert all(arm["why"] for arm in plan["arms"])
    assert plan["estimate"]["low_usd"] < plan["estimate"]["usd"] < plan["estimate"]["high_usd"]


def test_derived_candidates_and_what_was_left_out_are_recorded(services: Services) -> None:
    put_spec(services, change(SOUND, candidates=()))
    plan = recorded(services, plan_trial(EVENT, services=services)["plan_key"])

    assert ["baseline", "compile"] == [arm["name"] for arm in plan["arms"]]
    assert {"managed-compiler", "larger batch", "fp8"} == {
        left["name"] for left in plan["left_out"]
    }


def test_a_job_that_the_quota_does_not_hold_ends_the_trial_before_it_starts(
    services: Services,
) -> None:
    answer = plan_trial(EVENT, services=with_quota(services, 0))
    (reason,) = recorded(services, answer["decision_key"])["reasons"]

    assert ("inconclusive", "quota_too_low") == (answer["verdict"], reason["code"])
    assert f"{KIND} for training job usage" in reason["fix"]


@pytest.mark.parametrize(("instances", "quota"), [(1, 1), (64, 64)])
def test_a_quota_that_holds_a_job_is_recorded_with_what_rounds_need(
    instances: int, quota: int, services: Services
) -> None:
    answer = plan_trial(EVENT, services=with_quota(services, instances))
    (need,) = recorded(services, answer["plan_key"])["quotas"]

    assert (1, quota) == (need["one_job"], need["quota"])
    assert need["at_once"] >= 1


def test_a_quota_that_is_not_known_stops_nothing(services: Services) -> None:
    """Jobs then run one after the other: the quota may hold no more than one."""
    unknown = dataclasses.replace(services, quotas=FixedQuotas())
    answer = plan_trial(EVENT, services=unknown)
    layout = recorded(services, answer["plan_key"])["layout"]

    assert {1} == {found["at_once"] for found in layout}

    assert [None] == [need["quota"] for need in recorded(services, answer["plan_key"])["quotas"]]
