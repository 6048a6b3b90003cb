"""``judge --plan``: what a proof takes, by the judge's own design."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from compilegate.domain.judging.statistics import Design
from tests.cli.conftest import Invoke
from tests.domain.evidence_builder import GOOD, document
from tests.domain.outcome_builder import scored
from tools.docs.examples import trial

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"


def test_the_table_is_the_judges_own_design(invoke: Invoke) -> None:
    result = invoke("judge", "--plan", "--json")

    document = json.loads(result.stdout)
    assert 42 == len(document["runs_needed"])
    for cell in document["runs_needed"]:
        design = Design(cell["history"], cell["max_runs"], 0.05)
        relative = cell["spread_per_margin"]
        assert (design.runs_needed(relative, 0.8), design.runs_needed(relative, 0.9)) == (
            cell["runs_80"],
            cell["runs_90"],
        )
    for cell in document["provable_margin"]:
        design = Design(cell["history"], cell["max_runs"], 0.05)
        assert cell["margin_per_spread"] == design.provable_margin(cell["runs"])


def test_the_table_fits_80_columns_and_marks_what_is_underpowered(invoke: Invoke) -> None:
    result = invoke("judge", "--plan")

    lines = [line.rstrip() for line in result.stdout.splitlines()]
    table = lines[: lines.index("Smallest margin that a number of runs proves")]
    rows = {line.split()[0]: line.split()[1:] for line in table if line}
    assert [] == [line for line in lines if len(line) > 80]
    assert ["3/3", "2/3", "2/2", "5/5", "3/5", "2/3"] == rows["0.2"]
    assert ["-/-"] * 3 == rows["2"][:3]
    assert 0 == result.exit_code


def test_several_candidates_share_the_error_and_need_more_runs(invoke: Invoke) -> None:
    tables = [
        json.loads(invoke("judge", "--plan", "--json", "--candidates", k).stdout)["runs_needed"]
        for k in (1, 4)
    ]

    one, four = ([cell["runs_80"] or 99 for cell in table] for table in tables)
    assert all(a <= b for a, b in zip(one, four, strict=True))
    assert one != four


def test_one_case_is_answered_for_both_modes(invoke: Invoke) -> None:
    case = ("judge", "--plan", "--spread", 0.003, "--margin", 0.005, "--history", 10)

    shown = invoke(*case)
    document = json.loads(invoke(*case, "--json").stdout)

    design = Design(10, 12, 0.05)
    assert ["shadow", "hybrid"] == [d["mode"] for d in document["designs"]]
    assert design.runs_needed(0.6, 0.8) == document["designs"][0]["runs_80"]
    assert design.best_margin() * 0.003 == pytest.approx(document["designs"][0]["provable_margin"])
    assert f"shadow: {document['designs'][0]['runs_80']} runs for an 80% chance" in shown.stdout
    assert 0 == shown.exit_code


def test_allowed_runs_that_prove_too_little_exit_with_11(invoke: Invoke) -> None:
    result = invoke("judge", "--plan", "--spread", 1, "--margin", 0.4, "--max-runs", 6)

    assert 11 == result.exit_code
    assert "allowed: stopped during the trial as underpowered" in " ".join(result.stdout.split())


def test_an_evidence_document_shows_its_own_case(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(trial()))

    document = json.loads(invoke("judge", file, "--plan", "--json").stdout)
    other = json.loads(invoke("judge", file, "--plan", "--json", "--margin", 0.001).stdout)

    modes = [design["mode"] for design in document["designs"]]
    assert (0.005, 8, 1) == (document["margin"], document["history"], document["candidates"])
    assert ["hybrid"] == modes
    assert 0.001 == other["margin"]


def test_runs_with_outcomes_show_what_more_examples_would_spare(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(scored(0.0005, runs=5)))

    found = json.loads(invoke("judge", file, "--plan", "--json").stdout)["evaluation"]
    words = " ".join(invoke("judge", file, "--plan").stdout.split())

    assert "more_examples" == found["finding"]
    assert "comes from the choice of 2,000 evaluation examples" in words
    assert f"{found['best_examples']:,} examples would spare {found['runs_saved']} runs" in words


def test_a_workload_file_shows_its_own_case(tmp_path: Path, invoke: Invoke) -> None:
    workload = yaml.safe_load((WORKLOADS / "demo-lm.yaml").read_text())
    workload["quality"] |= {"history": [2.1, 2.12, 2.09], "margin": 0.04}
    file = tmp_path / "workload.yaml"
    file.write_text(yaml.safe_dump(workload))

    document = json.loads(invoke("judge", file, "--plan", "--json").stdout)

    assert (0.04, 3) == (document["margin"], document["history"])
    assert 0.01528 == pytest.approx(document["spread"], abs=1e-5)


def test_standard_input_is_a_file_too(invoke: Invoke) -> None:
    result = invoke("judge", "-", "--plan", "--json", stdin=json.dumps(document(metrics=GOOD)))

    assert 0.02 == json.loads(result.stdout)["margin"]


def test_a_file_without_past_results_asks_for_them_or_for_the_spread(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(document()))

    asked: Any = invoke("judge", file, "--plan")
    chosen: Any = invoke("judge", file, "--plan", "--spread", 0.01, "--json")

    assert "quality.history: has no spread" in asked.stderr
    assert 0.01 == json.loads(chosen.stdout)["spread"]
