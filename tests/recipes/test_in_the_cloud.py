"""The page's DAG by Airflow, and its state machine: jobs that train in the embedded cloud."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from compilegate_localcloud.connection import RunState
from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests.conftest import FAST, make_places
from distributions.localcloud.tests.helpers import ROLE, Machines
from tests.archives import tarball
from tests.environments import ROOT, asked
from tests.packages.conftest import build, wheel
from tests.recipes import page
from tests.recipes.flags import FLAGS, NAME

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]  # it installs Airflow


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunState]:
    """An embedded cloud that holds the bucket of the page."""
    with LocalCloud(places=make_places(tmp_path_factory.mktemp("cloud"))) as started:
        started.start(attached=True, extra_arguments=FAST)
        state = started.running_state()
        s3 = state.client("s3")
        s3.create_bucket(Bucket="my-bucket")
        source = tarball({"launch.py": "import sys; print(*sys.argv[1:])"})
        s3.put_object(Bucket="my-bucket", Key="source/sourcedir.tar.gz", Body=source)
        yield state


@pytest.fixture(scope="module")
def jobs(cloud: RunState, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    home = tmp_path_factory.mktemp("airflow")
    asked("airflow", "-m", "tests.recipes.on_airflow", home, **cloud.environment())
    answers: dict[str, dict[str, Any]] = json.loads((home / "answers.json").read_text())
    return answers


def check(job: dict[str, Any], tags: list[dict[str, str]], *, on: bool) -> None:
    """It is the job of the page, the baseline's or the candidate's, and it has trained."""
    assert "Completed" == job["TrainingJobStatus"]
    expected = {"batch_size": "32", "learning_rate": "5e-05"}
    if on:
        expected = {
            "batch_size": "48", "learning_rate": "7.5e-05", "compiler": '"torch_compile"',
            "arm": '"compile"',
        }  # fmt: skip
    own = {"sagemaker_program", "sagemaker_submit_directory", "script"}
    assert expected == {key: text for key, text in job["HyperParameters"].items() if key not in own}
    said = {tag["Key"].removeprefix("compilegate:"): tag["Value"] for tag in tags}
    assert ("bert-docs", "team", "compile" if on else "baseline") == (
        said["workload"], said["stage"], said["arm"],
    )  # fmt: skip


@pytest.mark.parametrize("flag", FLAGS)
def test_the_job_that_a_run_of_the_dag_starts_is_what_the_flag_says_then(
    flag: str, jobs: Any
) -> None:
    assert "success" == jobs[flag]["run"]
    check(jobs[flag], jobs[flag]["Tags"], on=flag == "on")


def test_each_run_of_the_dag_starts_a_job_of_its_own(jobs: Any) -> None:
    assert len(FLAGS) == len({job["TrainingJobName"] for job in jobs.values()})


def request() -> dict[str, Any]:
    """The job of the page, as its DAG has it."""
    for statement in ast.parse(page.block("python", *page.AIRFLOW)).body:
        if isinstance(statement, ast.Assign):
            return dict(eval(compile(ast.Expression(statement.value), "page", "eval")))
    raise AssertionError("the DAG of the page has no request")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a team uploads as its function: the wheel, and the handler of the page."""
    folder = tmp_path_factory.mktemp("wheel")
    build(ROOT / "distributions" / "flags", folder)
    buffer = io.BytesIO(wheel(folder, "compilegate_flags").read_bytes())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("index.py", page.block("python", *page.STEP_FUNCTIONS))
    return buffer.getvalue()


@pytest.mark.parametrize("flag", FLAGS)
def test_the_state_machine_s_job_is_what_the_flag_says_then(
    flag: str, cloud: RunState, package: bytes
) -> None:
    cloud.client("ssm").put_parameter(Name=NAME, Value=FLAGS[flag], Type="String", Overwrite=True)
    function = cloud.client("lambda").create_function(
        FunctionName=f"follow-{flag}", Runtime="python3.12", Handler="index.handle", Role=ROLE,
        Code={"ZipFile": package}, Timeout=660, Publish=True,
    )["FunctionArn"]  # fmt: skip
    definition = json.loads(page.block("json", "QueryLanguage"))
    definition["States"]["FollowFlag"]["Arguments"]["FunctionName"] = function
    name = f"nightly-{flag}"

    ended = Machines(cloud.client).run(
        definition, {"request": {**request(), "TrainingJobName": name}}, seconds=90
    )

    assert "SUCCEEDED" == ended["status"], ended
    sagemaker = cloud.client("sagemaker")
    job = sagemaker.describe_training_job(TrainingJobName=name)
    check(job, sagemaker.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"], on=flag == "on")
