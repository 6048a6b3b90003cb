"""Every field of every request is one that Step Functions passes on to SageMaker."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.request.problems import unsupported_fields
from compilegate.domain.request.sample import sample_requests
from compilegate.facts import step_functions_fields
from compilegate.usecases.trial.job_requests import check_request
from tests.domain.test_request import CONTEXT, full, short

SUPPORTED = step_functions_fields()


def paths(request: dict[str, Any]) -> list[str]:
    return [violation.path for violation in unsupported_fields(SUPPORTED, request)]


@pytest.mark.parametrize("request_", [full(), short(), *sample_requests(CONTEXT)])
def test_no_request_has_a_field_that_is_not_passed_on(request_: dict[str, Any]) -> None:
    assert [] == paths(request_)


def test_the_sample_has_every_optional_part_of_a_request() -> None:
    fields = {name for request in sample_requests(CONTEXT) for name in request}

    assert {
        "EnableManagedSpotTraining", "InputDataConfig", "VpcConfig", "CheckpointConfig", "Tags",
        "Environment",
    } <= fields  # fmt: skip


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"ProfilerConfig": {"DisableProfiler": True}}, "ProfilerConfig"),
        ({"ProfilerConfig": {}}, "ProfilerConfig"),
        ({"RetryStrategy": {"MaximumRetryAttempts": 1}}, "RetryStrategy"),
        ({"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}},
         "ResourceConfig.KeepAlivePeriodInSeconds"),
        ({"InputDataConfig": [{"ChannelName": "a", "ShuffleConfig": {"Seed": 1}}]},
         "InputDataConfig.ShuffleConfig"),
        ({"Tags": [{"key": "a", "Value": "b"}]}, "Tags.key"),
    ],
)  # fmt: skip
def test_any_other_field_is_named(change: dict[str, Any], path: str) -> None:
    assert [path] == paths(change)


def test_names_below_a_map_are_free() -> None:
    assert [] == paths({"HyperParameters": {"any.thing": "1"}, "Environment": {"ANY": "1"}})


def test_the_check_before_a_job_refuses_such_a_field() -> None:
    request = copy.deepcopy(full())
    check_request(request)
    request["ProfilerConfig"] = {"DisableProfiler": True}

    with pytest.raises(InvalidInputError, match="Step Functions passes on"):
        check_request(request)
