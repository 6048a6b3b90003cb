"""The limits on file are those of the installed botocore."""

from __future__ import annotations

from compilegate.facts import read
from tests.conformance.service_model import FILE, document, written


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
