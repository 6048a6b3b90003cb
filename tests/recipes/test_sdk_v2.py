"""The estimator and the pipeline of the page by the SDK v2: built and, if that can be, executed."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.conformance.test_capture_again import UNREACHABLE, run
from tests.recipes.flags import FLAGS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # it may install the SDK
TODAY = {"compiler": '"none"', "batch_size": "32", "learning_rate": "5e-05"}
PROMOTED = {"compiler": '"torch_compile"', "batch_size": "48", "learning_rate": "7.5e-05"}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    built = run("make", "-s", "build/.sdk", f"PYTHON={sys.executable}")
    if built.returncode and any(words in built.stderr.lower() for words in UNREACHABLE):
        pytest.skip("the package registry cannot be reached, so the SDK cannot be installed")
    assert 0 == built.returncode, built.stderr
    path = tmp_path_factory.mktemp("sdk") / "sent.json"
    asked = run(".venv-sdk/bin/python", "-m", "tests.recipes.on_sdk_v2", str(path))
    assert 0 == asked.returncode, asked.stderr[-2000:]
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def tags(job: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"].removeprefix("compilegate:"): tag["Value"] for tag in job["Tags"]}


@pytest.mark.parametrize("flag", FLAGS)
def test_the_estimator_s_job_is_what_the_flag_says(flag: str, sent: Any) -> None:
    job, on = sent["estimator"][flag]["job"], flag == "on"

    expected = PROMOTED if on else {"batch_size": "32", "learning_rate": "5e-05"}
    assert expected.items() <= job["HyperParameters"].items()
    assert on == ("compiler" in job["HyperParameters"])
    assert ("compile" if on else "baseline") == tags(job)["arm"]


def test_the_pipeline_is_the_same_whatever_the_flag_says_as_it_is_defined(sent: Any) -> None:
    definitions = [sent["pipeline"][flag]["definition"] for flag in FLAGS]

    assert [definitions[0]] * len(FLAGS) == definitions
    follow, train = definitions[0]["Steps"]
    assert ("Lambda", "Training") == (follow["Type"], train["Type"])
    # What a cached step once said would be followed for as long as the cache holds.
    assert "CacheConfig" not in follow
    assert {"Get": "Steps.FollowFlag.OutputParameters['arm']"} == tags(train["Arguments"])["arm"]


@pytest.mark.parametrize("flag", FLAGS)
def test_the_job_of_an_execution_is_what_the_flag_says_then(flag: str, sent: Any) -> None:
    job, arm = sent["pipeline"][flag]["job"], "compile" if flag == "on" else "baseline"

    expected = {**(PROMOTED if flag == "on" else TODAY), "arm": arm, "script": '"run_glue.py"'}
    assert expected.items() <= job["HyperParameters"].items()
    assert {"COMPILEGATE_ARM": arm, "COMPILEGATE_STAGE": "prod"} == job["Environment"]
    assert {"workload": "bert-docs", "stage": "team", "deployment": "prod", "arm": arm} == tags(job)
