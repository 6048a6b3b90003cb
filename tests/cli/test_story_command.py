"""``report --story``: the workload's story is told, saved and found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilegate.cli.common.cloud import Cloud
from tests import fakes
from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.fakes import FakeProviders


@pytest.fixture
def cloud(providers: FakeProviders, invoke: Invoke, tmp_path: Path) -> Cloud:
    """A cloud in which one workload is registered."""
    providers.aws_cloud = fakes.cloud()
    assert 0 == invoke("register", write_project(tmp_path / "team")).exit_code
    return providers.aws_cloud


@pytest.mark.usefixtures("cloud")
def test_the_page_is_saved_beside_the_trials_reports(invoke: Invoke) -> None:
    result = invoke("report", "bert-docs", "--story")

    page = Path("compilegate-reports/bert-docs-story/story.html")
    assert (0, f"{page}\n") == (result.exit_code, result.stdout)
    assert "bert-docs is registered, and production has not trained it yet" in page.read_text()


@pytest.mark.usefixtures("cloud")
def test_as_json_all_three_files_are_named(invoke: Invoke) -> None:
    result = invoke("report", "bert-docs", "--story", "--json")

    named = json.loads(result.stdout)
    assert ["html", "json", "markdown"] == sorted(named)
    assert "bert-docs" == json.loads(Path(named["json"]).read_text())["workload"]
    assert "Registered" in Path(named["markdown"]).read_text()


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize("words", [[], ["bert-docs", "--trial", "0mabc123"]])
def test_a_story_is_of_one_workload_and_all_its_trials(invoke: Invoke, words: list[str]) -> None:
    result = invoke("report", *words, "--story")

    assert 2 == result.exit_code
    assert "compilegate report WORKLOAD --story" in result.stderr


@pytest.mark.usefixtures("cloud")
def test_of_a_workload_that_nobody_knows_it_says_so(invoke: Invoke) -> None:
    result = invoke("report", "nobody", "--story")

    assert 1 == result.exit_code
    assert "nobody has no history" in result.stderr


def test_without_a_local_cloud_the_story_saved_before_is_named(
    invoke: Invoke, providers: FakeProviders, cloud: Cloud
) -> None:
    providers.local_cloud = cloud
    first = invoke("report", "bert-docs", "--story", "--local")
    providers.local_cloud = None

    again = invoke("report", "bert-docs", "--story", "--local")
    other = invoke("report", "other", "--story", "--local")

    assert (first.stdout, 0) == (again.stdout, again.exit_code)
    assert "this report was saved before" in again.stderr
    assert 1 == other.exit_code
