"""``check`` of folders and many files: each gets its answer, and the end adds them up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilegate.cli.check import Totals
from compilegate.domain.economics import Range
from compilegate.domain.eligibility.check import CandidateEligibility, Eligibility
from compilegate.domain.eligibility.payoff import Economics
from compilegate.domain.errors import path_shown
from compilegate.domain.workload.model import Candidate
from tests.cli.project import write_project

TREES = (
    ('name: pytorch\n  version: "2.13.0"', 'name: xgboost\n  version: "1.7-1"'),
    ("family: transformer", "family: gbt"),
)


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Two teams' folders: five sound workloads, one that no compiler helps, one with a mistake."""
    good = write_project(tmp_path / "a")
    text = good.read_text()
    for index in range(4):
        name = f"job-{index}"
        (good.parent / f"{name}.yml").write_text(text.replace("bert-docs", name))
    trees = write_project(tmp_path / "b", *TREES, ("name: bert-docs", "name: trees"))
    wrong = text.replace("name: bert-docs", "name: wrong").replace("margin: 0.005", "margin: -1")
    (trees.parent / "wrong.yaml").write_text(wrong)
    (trees.parent / "values.yaml").write_text("replicas: 2\nimage: web\n")
    hidden = tmp_path / "b" / ".cache"
    hidden.mkdir()
    (hidden / "old.yaml").write_text(text)
    return tmp_path


def test_a_folder_is_searched_for_what_looks_like_a_workload(team, invoke):
    result = invoke("check", team, "--jsonl")

    answers = [json.loads(line) for line in result.stdout.splitlines()]
    names = [Path(answer["file"]).name for answer in answers]
    assert [
        "bert-docs.yaml", "job-0.yml", "job-1.yml", "job-2.yml", "job-3.yml", "bert-docs.yaml",
        "wrong.yaml",
    ] == names  # fmt: skip


def test_many_get_a_line_each_and_a_sum(team, invoke):
    result = invoke("check", team)

    lines = result.stdout.splitlines()
    text = " ".join(result.stdout.split())
    assert 2 == result.exit_code
    assert ["bert-docs", "job-0", "job-1", "job-2", "job-3", "trees"] == [
        line[14:].split()[0] for line in lines[:6]
    ]
    assert "6 workloads: " in text
    assert "1 not eligible, 1 file invalid" in text
    assert "training costs per year" in text
    assert "Largest training costs without an eligible compiler" in text
    assert [line for line in lines if len(line) > 80] == []
    assert "\x1b" not in result.stdout


def test_the_sum_is_the_sum_of_the_documents(team, invoke):
    (team / "b" / "workloads" / "wrong.yaml").unlink()
    documents = json.loads(invoke("check", team, "--json").stdout)

    result = invoke("check", team)

    usd = sum(document["economics"]["annual_training_usd"] for document in documents)
    assert f"training costs per year   ${usd:,.0f}" in result.stdout
    assert 6 == len(documents)
    assert {document["verdict"] for document in documents} >= {"ineligible"}


def test_a_name_used_twice_is_reported_and_counted_once(team, invoke):
    first, second = (team / "a" / "workloads" / f"job-{index}.yml" for index in (0, 1))
    second.write_text(first.read_text())

    result = invoke("check", first, second, "--json")

    answers = json.loads(result.stdout)
    assert (2, [False, True]) == (result.exit_code, ["error" in answer for answer in answers])
    assert f"{second}: name: is also the name of the workload in {first}" in result.stderr


def test_a_file_named_twice_is_checked_once(team, invoke):
    folder = team / "a" / "workloads"

    result = invoke("check", folder, folder / "job-0.yml", "--jsonl")

    assert 5 == len(result.stdout.splitlines())


def test_a_folder_without_workloads_is_bad_input(tmp_path, invoke):
    (tmp_path / "values.yaml").write_text("replicas: 2\n")

    result = invoke("check", tmp_path)

    assert 2 == result.exit_code
    assert f"{tmp_path}: contains no workload file" in result.stderr


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 3000 + "b.yaml", "nothing-here"])
def test_a_name_that_the_disk_refuses_is_bad_input(name, invoke):
    result = invoke("check", name)

    assert 2 == result.exit_code
    assert result.stderr.startswith(f"Error: {path_shown(name)}: ")


def test_an_error_of_many_files_is_counted(team, invoke):
    for index in range(4):
        file = team / "a" / "workloads" / f"job-{index}.yml"
        file.write_text(file.read_text().replace("  run_hours: 6.0\n", ""))

    result = invoke("check", team)

    assert "in 4 files: schedule.run_hours is missing" in result.stdout
    assert 4 == result.stderr.count("schedule.run_hours: is missing")


def test_two_forms_of_output_are_one_too_many(team, invoke):
    result = invoke("check", team, "--json", "--jsonl")

    assert (2, "--jsonl") == (result.exit_code, json.loads(result.stdout)["error"]["field"])


def answered(name: str, usd: float | None, saving: Range | None) -> Eligibility:
    """A workload that may be tried; USD per year."""
    economics = Economics(
        annual_training_usd=usd,
        plausible_annual_saving_usd=saving,
        plausible_speedup=None,
        largest_speedup=None,
        trial_usd=None,
        break_even=None,
        overhead=None,
        payback_days=None,
        region="us-east-1",
        prices_region=None,
        prices_as_of=None,
        price_source=None,
    )
    candidate = CandidateEligibility(Candidate(name="compile"), "torch_compile", ())
    return Eligibility(name, (candidate,), (), economics)


def test_the_few_that_matter_most_are_kept_whatever_their_order():
    totals = Totals()
    for usd in (3, 9, 1, 7, 5, 8, 2, 6, 4):
        totals.add(answered(f"w{usd}", 10.0 * usd, Range(0, usd)))

    assert [9, 8, 7, 6, 5] == sorted((usd for usd, *_ in totals.most_to_gain), reverse=True)
    assert (450.0, 45.0) == (totals.training_usd, totals.saving_high)


def test_a_workload_without_a_known_price_is_counted_and_not_taken_for_free():
    totals = Totals()
    totals.add(answered("w", None, None))

    assert (1, 0.0, []) == (totals.unpriced, totals.training_usd, totals.most_to_gain)
