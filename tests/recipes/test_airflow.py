"""The page's DAG, run by Airflow in the embedded cloud: a task reads the flag, a job follows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compilegate.localcloud.lifecycle import LocalCloud
from tests.archives import tarball
from tests.conformance.test_capture_again import UNREACHABLE, run
from tests.localcloud.conftest import FAST, make_places
from tests.recipes.flags import FLAGS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]  # it installs Airflow


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What aims boto3 at an embedded cloud that holds the bucket of the page."""
    with LocalCloud(places=make_places(tmp_path_factory.mktemp("cloud"))) as cloud:
        cloud.start(attached=True, extra_arguments=FAST)
        state = cloud.running_state()
        s3 = state.client("s3")
        s3.create_bucket(Bucket="my-bucket")
        source = tarball({"launch.py": "import sys; print(*sys.argv[1:])"})
        s3.put_object(Bucket="my-bucket", Key="source/sourcedir.tar.gz", Body=source)
        yield state.environment()


@pytest.fixture(scope="module")
def jobs(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    built = run("make", "-s", "build/.airflow", f"PYTHON={sys.executable}")
    if built.returncode and any(words in built.stderr.lower() for words in UNREACHABLE):
        pytest.skip("the package registry cannot be reached, so Airflow cannot be installed")
    assert 0 == built.returncode, built.stderr
    home = tmp_path_factory.mktemp("airflow")
    ran = subprocess.run(
        [".venv-airflow/bin/python", "-m", "tests.recipes.on_airflow", home],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert 0 == ran.returncode, ran.stdout[-3000:] + ran.stderr[-3000:]
    answers: dict[str, dict[str, Any]] = json.loads((home / "answers.json").read_text())
    return answers


@pytest.mark.parametrize("flag", FLAGS)
def test_the_job_that_a_run_starts_is_what_the_flag_says_then(flag: str, jobs: Any) -> None:
    job, on = jobs[flag], flag == "on"

    assert ("success", "Completed") == (job["run"], job["TrainingJobStatus"])
    expected = {"batch_size": "32", "learning_rate": "5e-05"}
    if on:
        expected = {
            "batch_size": "48", "learning_rate": "7.5e-05", "compiler": '"torch_compile"',
            "arm": '"compile"',
        }  # fmt: skip
    own = {"sagemaker_program", "sagemaker_submit_directory", "script"}
    assert expected == {key: text for key, text in job["HyperParameters"].items() if key not in own}
    tags = {tag["Key"]: tag["Value"] for tag in job["Tags"]}
    assert ("bert-docs", "team", "compile" if on else "baseline") == (
        tags["compilegate:workload"], tags["compilegate:stage"], tags["compilegate:arm"],
    )  # fmt: skip


def test_each_run_of_the_dag_starts_a_job_of_its_own(jobs: Any) -> None:
    assert len(FLAGS) == len({job["TrainingJobName"] for job in jobs.values()})
