"""``check`` and ``plan``: what could be gained and what finding out costs, without an account."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from compilegate.domain.workload_file import parse_workload
from tests.cli.conftest import Invoke
from tests.cli.project import write_project

TREES = (
    ('name: pytorch\n  version: "2.13.0"', 'name: xgboost\n  version: "1.7-1"'),
    ("family: transformer", "family: gbt"),
)
RAGGED = ("static: true", "static: false\n  padding: longest")


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [((), "eligible", 0), ((RAGGED,), "benchmark", 11), (TREES, "ineligible", 10)],
)
def test_the_verdict_is_the_exit_code(
    changes: tuple[tuple[str, str], ...], verdict: str, code: int, tmp_path: Path, invoke: Invoke
) -> None:
    result = invoke("check", write_project(tmp_path, *changes), "--json")

    assert (verdict, code) == (json.loads(result.stdout)["verdict"], result.exit_code)


def test_people_get_reasons_with_fixes_and_the_money_in_80_columns(
    tmp_path: Path, invoke: Invoke
) -> None:
    result = invoke("check", write_project(tmp_path, RAGGED))

    text = " ".join(result.stdout.split())
    assert result.stdout.startswith("bert-docs: measure it\n")
    assert "- mind: shapes change from step to step" in text
    assert "Fix: pad to a few fixed lengths" in text
    assert "training costs per year $" in text
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert "\x1b" not in result.stdout


def test_several_files_answer_with_a_list_and_the_highest_exit_code(
    tmp_path: Path, invoke: Invoke
) -> None:
    files = [write_project(tmp_path / "a"), write_project(tmp_path / "b", *TREES)]
    files[1] = files[1].rename(files[1].with_name("trees.yaml"))
    files[1].write_text(files[1].read_text().replace("name: bert-docs", "name: trees"))

    result = invoke("check", *files, "--json")

    verdicts = [document["verdict"] for document in json.loads(result.stdout)]
    assert (["eligible", "ineligible"], 10) == (verdicts, result.exit_code)


def test_the_plan_shows_arms_rounds_and_the_expected_cost(tmp_path: Path, invoke: Invoke) -> None:
    result = invoke("plan", write_project(tmp_path))

    text = " ".join(result.stdout.split())
    assert 0 == result.exit_code
    assert "bert-docs: 2 arms" in text
    assert "compile torch_compile" in text
    assert "probably 3 per arm (at most 12)" in text
    assert "never exceeded is $5,000 (policy.max_trial_usd)" in text
    assert "up to" not in text
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_the_plan_as_json_has_an_example_of_every_request(tmp_path: Path, invoke: Invoke) -> None:
    document = json.loads(invoke("plan", write_project(tmp_path), "--json").stdout)

    names = [request["TrainingJobName"].rpartition("-")[2] for request in document["examples"]]
    assert ["s0", "q1a17", "q1b17"] == names
    assert "1" == document["examples"][0]["HyperParameters"]["blocks"]
    assert {"ml.g5.xlarge"} == {
        request["ResourceConfig"]["InstanceType"] for request in document["examples"]
    }


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ((("quality:", "policy: {max_trial_usd: 1}\nquality:"),), "trial_over_budget", "max_trial"),
        (TREES, "ineligible", "no candidate is eligible"),
    ],
)
def test_a_trial_that_would_be_refused_is_exit_11(
    changes: tuple[tuple[str, str], ...], code: str, told: str, tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, *changes)

    said = invoke("plan", file)
    document = json.loads(invoke("plan", file, "--json").stdout)

    assert 11 == said.exit_code
    assert "there would be no trial" in said.stdout
    assert told in said.stdout
    assert code == document["refused"]["code"]


def test_the_examples_in_the_workloads_folder_are_valid(invoke: Invoke) -> None:
    folder = Path(__file__).resolve().parents[2] / "workloads"
    files = sorted(folder.glob("*.yaml"))

    names = [parse_workload(yaml.safe_load(file.read_text())).name for file in files]

    assert len(names) == len(set(names)) > 0
