"""Our requests are those that the SageMaker Python SDK would send, but for reasons on file."""

from __future__ import annotations

import botocore.session
import pytest
from botocore.validate import ParamValidator

from compilegate.domain.service_limits import problems
from compilegate.facts import read
from tests.conformance import ours, stored
from tests.conformance.compare import Difference, differences, occurrences, unjustified
from tests.conformance.invalid import INVALID, key
from tests.conformance.matrix import cases, digest
from tests.conformance.service_model import FILE, document, written

WANTED = 60
AGAIN = "the matrix or an image changed: capture again with `make conformance`"


@pytest.fixture(scope="module")
def differing() -> list[Difference]:
    captured = stored.read()["requests"]
    return [
        one
        for case in cases()
        for one in differences(case.id, stored.flat(ours.built(case)), captured[case.id])
    ]


def test_every_combination_is_captured_and_none_besides():
    captured = stored.read()["requests"]

    assert {case.id for case in cases()} == set(captured), AGAIN
    assert len(captured) >= WANTED


def test_no_request_differs_from_the_sdks_without_a_reason(differing):
    assert [] == unjustified(differing)


def test_every_reason_still_explains_a_difference(differing):
    assert [] == [reason for reason, count in occurrences(differing).items() if not count]


def test_whatever_cannot_work_is_refused():
    assert {key(row) for row in INVALID} == stored.read()["refusals"].keys(), AGAIN
    assert [] == [key(row) for row in INVALID if not ours.refusal(row)]


def test_every_image_on_file_is_the_sdks():
    images = stored.read()["images"]

    assert {} == images["differing"]
    assert digest() == images["digest"], AGAIN


def test_every_request_of_the_matrix_is_one_that_the_service_would_take():
    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateTrainingJob").input_shape
    limits = read("create_training_job")

    for case in cases():
        request = ours.built(case)

        assert "" == ParamValidator().validate(request, shape).generate_report()
        assert [] == [str(problem) for problem in problems(request, limits)]


def test_the_limits_on_file_are_the_installed_botocores():
    """Otherwise: ``python -m tests.conformance.service_model``."""
    on_file = read("create_training_job")

    assert document(on_file["as_of"]) == on_file
    assert written(on_file) == FILE.read_text()


# Where the figures that `compilegate facts` shows stand in the service's model.
SHOWN = {
    "job_name_max": "TrainingJobName",
    "hyperparameters_max": "HyperParameters",
    "hyperparameter_key_max": "HyperParameterKey",
    "hyperparameter_value_max": "HyperParameterValue",
    "environment_max": "TrainingEnvironmentMap",
    "environment_key_max": "TrainingEnvironmentKey",
    "environment_value_max": "TrainingEnvironmentValue",
    "metric_definitions_max": "MetricDefinitionList",
    "metric_name_max": "MetricName",
    "metric_regex_max": "MetricRegex",
    "tags_max": "TagList",
    "tag_key_max": "TagKey",
    "tag_value_max": "TagValue",
    "channels_max": "InputDataConfig",
    "image_max": "AlgorithmImage",
}


def test_the_limits_that_are_shown_are_those_that_are_checked():
    shapes = read("create_training_job")["shapes"]
    shown = read("limits")["create_training_job"]

    assert {name: shapes[shape]["max"] for name, shape in SHOWN.items()} == {
        name: shown[name] for name in SHOWN
    }
