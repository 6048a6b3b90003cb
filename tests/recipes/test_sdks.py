"""The page's jobs and its pipeline by the SDKs themselves: built and, if that can be, executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilegate_discover.grouping import Group
from compilegate_discover.source import fetch
from distributions.discover.tests.cloud import AccountInMemory
from distributions.discover.tests.jobs import NOW, read
from tests.environments import ROOT, asked
from tests.recipes.flags import FLAGS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # it may install the SDK
TODAY = {"compiler": '"none"', "batch_size": "32", "learning_rate": "5e-05"}
PROMOTED = {"compiler": '"torch_compile"', "batch_size": "48", "learning_rate": "7.5e-05"}


def sent_by(environment: str, module: str, folder: Path) -> dict[str, Any]:
    """What a module of this folder writes in the environment of an SDK."""
    # The module may begin its work in another folder.
    asked(environment, "-m", f"tests.recipes.{module}", folder / "sent.json", PYTHONPATH=str(ROOT))
    document: dict[str, Any] = json.loads((folder / "sent.json").read_text())
    return document


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return sent_by("sdk", "on_sdk_v2", tmp_path_factory.mktemp("sdk"))


@pytest.fixture(scope="module")
def sent_by_v3(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return sent_by("sdk3", "on_sdk_v3", tmp_path_factory.mktemp("sdk3"))


def tags(job: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"].removeprefix("compilegate:"): tag["Value"] for tag in job["Tags"]}


@pytest.mark.parametrize("flag", FLAGS)
def test_the_estimator_s_job_is_what_the_flag_says(flag: str, sent: Any) -> None:
    job, on = sent["estimator"][flag]["job"], flag == "on"

    expected = PROMOTED if on else {"batch_size": "32", "learning_rate": "5e-05"}
    assert expected.items() <= job["HyperParameters"].items()
    assert on == ("compiler" in job["HyperParameters"])
    assert ("compile" if on else "baseline") == tags(job)["arm"]


@pytest.mark.parametrize("flag", FLAGS)
def test_the_model_trainer_s_job_is_what_the_flag_says(flag: str, sent_by_v3: Any) -> None:
    job, on = sent_by_v3[flag]["job"], flag == "on"

    # It writes texts as they are, not as JSON; the container's toolkit reads both.
    expected = {"script": "run_glue.py", "batch_size": "32", "learning_rate": "5e-05"}
    if on:
        expected |= {
            "compiler": "torch_compile", "batch_size": "48", "learning_rate": "7.5e-05",
            "arm": "compile",
        }  # fmt: skip
    assert expected == job["HyperParameters"]
    assert "s3://my-bucket/models/" == job["OutputDataConfig"]["S3OutputPath"]
    assert {"MaxRuntimeInSeconds": 6 * 3600} == job["StoppingCondition"]
    assert ("compile" if on else "baseline") == tags(job)["arm"]


def test_discover_reads_the_code_that_version_3_has_uploaded(
    sent_by_v3: Any, tmp_path: Path
) -> None:
    sent = sent_by_v3["off"]
    (job,) = read(sent["job"] | {"CreationTime": NOW, "TrainingJobStatus": "Completed"})
    account = AccountInMemory({}, objects={
        f"{job.drivers}/sourcecode.json": json.dumps(sent["started"]).encode(),
        f"{job.source}/launch.py": b"import torch",
    })  # fmt: skip
    code = fetch(Group("x", (job,), ()), "x", tmp_path, account.client("s3", "us-east-1"))

    assert "launch.py" == getattr(code, "program", code)
    assert "" == job.setup.program


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
