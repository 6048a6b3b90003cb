"""``judge --plan``: what a proof takes, by the judge's own design."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from compilegate.domain.judging.design import Design
from tests.domain.evidence_builder import GOOD, document
from tests.domain.outcome_builder import scored
from tools.docs.examples import trial

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"


def test_the_table_is_the_judges_own_design(asked):
    document = asked("judge", "--plan")

    assert 42 == len(document["runs_needed"])
    for cell in document["runs_needed"]:
        design = Design(cell["history"], cell["max_runs"], 0.05)
        for power in (80, 90):
            needed = design.runs_needed(cell["spread_per_margin"], power / 100)
            assert needed == cell[f"runs_{power}"]
    for cell in document["provable_margin"]:
        design = Design(cell["history"], cell["max_runs"], 0.05)
        assert cell["margin_per_spread"] == design.provable_margin(cell["runs"])


def test_allowed_runs_that_prove_too_little_exit_with_11(invoke):
    result = invoke("judge", "--plan", "--spread", 1, "--margin", 0.4, "--max-runs", 6)

    assert 11 == result.exit_code
    assert "allowed: stopped during the trial as underpowered" in " ".join(result.stdout.split())


def test_runs_with_outcomes_show_what_more_examples_would_spare(tmp_path, shown, asked):
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(scored(0.0005, runs=5)))

    plan, words = asked("judge", file, "--plan")["evaluation"], shown("judge", file, "--plan")

    assert "more_examples" == plan["finding"]
    assert "comes from the choice of 2,000 evaluation examples" in words
    assert f"{plan['best_examples']:,} examples would spare {plan['runs_saved']} runs" in words


def workload():
    document = yaml.safe_load((WORKLOADS / "demo-lm.yaml").read_text())
    document["quality"] |= {"history": [2.1, 2.12, 2.09], "margin": 0.04}
    return document


@pytest.mark.parametrize(
    ("name", "made", "margin", "history", "modes", "spread"),
    [
        ("evidence.json", trial, 0.005, 8, ["hybrid"], None),
        ("workload.yaml", workload, 0.04, 3, ["shadow"], 0.01528),
        ("-", partial(document, metrics=GOOD), 0.02, 0, ["shadow"], None),
    ],
)
def test_a_file_shows_its_own_case(*, name, made, margin, history, modes, spread, tmp_path, invoke):
    file = name if name == "-" else tmp_path / name
    text = yaml.safe_dump(made()) if name.endswith("yaml") else json.dumps(made())
    if name != "-":
        (tmp_path / name).write_text(text)

    case, other = (
        json.loads(invoke("judge", file, "--plan", "--json", *options, stdin=text).stdout)
        for options in ((), ("--margin", 0.001))
    )

    assert (margin, history, 1) == (case["margin"], case["history"], case["candidates"])
    assert modes == [design["mode"] for design in case["designs"]]
    assert spread is None or case["spread"] == pytest.approx(spread, abs=1e-5)
    assert (0.001, case["spread"]) == (other["margin"], other["spread"])


def test_a_file_without_past_results_asks_for_them_or_for_the_spread(tmp_path, invoke):
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps(document()))

    asked = invoke("judge", file, "--plan")
    chosen = invoke("judge", file, "--plan", "--spread", 0.01, "--json")

    assert "quality.history: has no spread" in asked.stderr
    assert 0.01 == json.loads(chosen.stdout)["spread"]
