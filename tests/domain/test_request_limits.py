"""Requests that SageMaker or Step Functions would refuse, with value, rule and fix."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.service_limits import (
    Violation,
    broken_rules,
    problems,
    unsupported_fields,
    violations,
)
from compilegate.domain.workload.limits import check_limits
from compilegate.domain.workload.names import METRIC_LINE
from compilegate.domain.workload.quality import Metric
from compilegate.facts import read, step_functions_fields
from compilegate.usecases.job_requests import request_limits
from compilegate_localcloud.emulator.clients import service_model
from compilegate_localcloud.emulator.sagemaker import validation
from compilegate_localcloud.emulator.sagemaker.failures import ApiError
from stacks.job_fields import sample_requests
from tests.domain.test_request import CONTEXT, full, short
from tests.domain.workload_builder import SOUND

MODEL = read("create_training_job")
SHAPE = service_model("sagemaker").operation_model("CreateTrainingJob").input_shape
SUPPORTED = step_functions_fields()


def broken(request: dict[str, Any]) -> list[Violation]:
    return list(violations(MODEL["shapes"], MODEL["input"], request))


def changed(path: str, value: object) -> dict[str, Any]:
    """A good request with one value put in its place; None takes it out."""
    request = copy.deepcopy(full())
    *way, last = path.split("/")
    place: Any = request
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return request


@pytest.mark.parametrize(
    ("field", "listed"),
    [
        ("quality.metric", {}),
        ("quality.guardrails[1].metric", {"guardrails": ["first", "{}"]}),
        ("quality.signals[0].metric", {"guardrails": ["first"], "signals": ["{}"]}),
    ],
)
def test_a_metric_that_no_expression_of_the_service_could_find_is_refused_by_its_field(
    field, listed
):
    """Each dot of a name takes two of the 500 characters that an expression may have."""
    room = 500 - len(METRIC_LINE.format("m"))

    def errors(name: str) -> list[str]:
        others = {
            key: tuple(Metric(metric=one.format(name), goal="maximize", margin=0.1) for one in many)
            for key, many in listed.items()
        }
        first = {} if listed else {"metric": name}
        quality = replace(SOUND.quality, **first, **others)
        try:
            check_limits(replace(SOUND, quality=quality), MODEL["shapes"])
        except InvalidInputError as refused:
            return [str(one.field) for one in refused.each]
        return []

    assert [] == errors("m" + "." * (room // 2))
    assert [field] == errors("m" + "." * (room // 2 + 1))


@pytest.mark.parametrize(
    ("path", "value", "where", "rule"),
    [
        ("TrainingJobName", "x" * 64, "TrainingJobName", "at most 63 characters, has 64"),
        ("RoleArn", None, "RoleArn", "is missing"),
        ("Extra", 1, "Extra", "is not a field of the request"),
        ("HyperParameters/" + "k" * 257, "v", "HyperParameters (the name)", "at most 256"),
        ("ResourceConfig/InstanceType", "ml.g5.13xlarge", "ResourceConfig.InstanceType",
         "ml.g5.12xlarge"),
        ("ResourceConfig/VolumeSizeInGB", -1, "ResourceConfig.VolumeSizeInGB", "at least 0"),
        ("Tags", [{"Key": f"k{n}", "Value": ""} for n in range(51)], "Tags",
         "at most 50 entries, has 51"),
    ],
)  # fmt: skip
def test_a_broken_limit_is_named(path, value, where, rule):
    violation, *_ = broken(changed(path, value))

    assert where == violation.path
    assert rule in violation.rule


@pytest.mark.parametrize("request_", [full(), short()], ids=["full run", "segments"])
def test_a_good_request_breaks_nothing(request_):
    assert "" == ParamValidator().validate(request_, SHAPE).generate_report()
    assert [] == broken(request_)
    assert [] == list(broken_rules(request_))
    assert [] == list(problems(request_, MODEL))


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("AlgorithmSpecification/AlgorithmName", "other", "AlgorithmSpecification"),
        ("AlgorithmSpecification/TrainingImage", None, "AlgorithmSpecification"),
        ("ResourceConfig/InstanceCount", None, "ResourceConfig"),
        ("EnableManagedSpotTraining", True, "StoppingCondition.MaxWaitTimeInSeconds"),
        ("StoppingCondition/MaxWaitTimeInSeconds", 99999, "StoppingCondition.MaxWaitTimeInSeconds"),
        ("Tags/0/Key", "AWS:mine", "Tags"),
        ("Tags/0/Key", "compilegate:run", "Tags"),
        ("InputDataConfig", [{"ChannelName": "train"}] * 2, "InputDataConfig"),
    ],
)  # fmt: skip
def test_a_rule_across_fields_is_named(path, value, where):
    (violation,) = broken_rules(changed(path, value))

    assert where == violation.path


def test_waiting_for_spot_includes_the_training():
    spot = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 900, "MaxWaitTimeInSeconds": 899},
    }

    (violation,) = broken_rules({**full(), **spot})

    assert "must be at least MaxRuntimeInSeconds (900)" == violation.rule


def test_a_problem_names_the_workloads_field_the_value_and_a_fix():
    (problem,) = problems(changed("HyperParameters/x", "v" * 2501), MODEL)

    assert "training.hyperparameters" == problem.field
    assert "HyperParameters.x of the job's request must be at most 2500" in str(problem)
    assert "Fix: shorten" in str(problem)
    assert problem.value is None, "a value that fills the screen helps nobody"


PATHS = (
    "TrainingJobName", "RoleArn", "HyperParameters/x", "Environment/A", "Tags/0/Value",
    "ResourceConfig/VolumeSizeInGB", "ResourceConfig/InstanceType", "StoppingCondition",
    "VpcConfig/Subnets", "CheckpointConfig/LocalPath", "OutputDataConfig/KmsKeyId",
    "AlgorithmSpecification/TrainingInputMode", "InputDataConfig", "ProfilerConfig",
    "EnableManagedSpotTraining",
)  # fmt: skip
VALUES = st.one_of(
    st.text(max_size=4000), st.integers(), st.lists(st.text(max_size=40)),
    st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=3),
    st.sampled_from(["File", "ml.g5.xlarge", "s3://b/k", "/opt/ml/x", ""]),
)  # fmt: skip


@given(path=st.sampled_from(PATHS), value=VALUES)
def test_two_walkers_agree_on_every_value(path, value):
    """The local cloud refuses what we refuse: it walks botocore's own shapes with other code."""
    request = changed(path, value)
    refused = False
    try:
        validation.check_request("CreateTrainingJob", request)
    except ApiError:
        refused = True

    assert refused == bool(broken(request))


def paths(request: dict[str, Any]) -> list[str]:
    return [violation.path for violation in unsupported_fields(SUPPORTED, request)]


@pytest.mark.parametrize("request_", [full(), short(), *sample_requests(CONTEXT)])
def test_step_functions_passes_on_every_field_of_a_request(request_):
    assert [] == paths(request_)


def test_the_sample_has_every_optional_part_of_a_request():
    fields = {name for request in sample_requests(CONTEXT) for name in request}

    assert {
        "EnableManagedSpotTraining", "InputDataConfig", "VpcConfig", "CheckpointConfig", "Tags",
        "Environment",
    } <= fields  # fmt: skip


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"ProfilerConfig": {"DisableProfiler": True}}, "ProfilerConfig"),
        ({"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}},
         "ResourceConfig.KeepAlivePeriodInSeconds"),
        ({"InputDataConfig": [{"ChannelName": "a", "ShuffleConfig": {"Seed": 1}}]},
         "InputDataConfig.ShuffleConfig"),
        ({"Tags": [{"key": "a", "Value": "b"}]}, "Tags.key"),
    ],
)  # fmt: skip
def test_any_other_field_is_refused_by_its_path(change, path):
    assert [path] == paths(change)


def test_the_check_before_a_job_refuses_such_a_field():
    request = copy.deepcopy(full())
    request_limits().check(request)
    request["ProfilerConfig"] = {"DisableProfiler": True}

    with pytest.raises(InvalidInputError, match="Step Functions passes on"):
        request_limits().check(request)
