"""What an export writes is what the tools themselves read: MLflow, Weights & Biases, Prometheus."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compilegate_exports.arm_runs import ArmRun, arm_runs
from tests.environments import ROOT, asked
from tests.exports.example import AT, TRIAL, report

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # it installs the packages


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("exports")
    distribution = str(ROOT / "distributions" / "exports")
    asked("exports", "-m", "tests.exports.read_back", folder, PYTHONPATH=distribution)
    document: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    return document


def expected() -> dict[str, Any]:
    return {one.arm: one for one in arm_runs(report(), trial=TRIAL, at=AT)}


def curve(run: ArmRun) -> list[list[float]]:
    return [list(point) for point in run.series["full_runs/eval_accuracy"]]


def test_mlflow_has_a_finished_run_per_arm_once(answers: dict[str, Any]) -> None:
    runs = answers["mlflow"]

    assert {f"{TRIAL}-baseline", f"{TRIAL}-compile"} == runs.keys()
    for arm, exported in expected().items():
        read = runs[f"{TRIAL}-{arm}"]
        assert ("FINISHED", AT * 1000) == (read["status"], read["start"])
        assert exported.params == read["params"]
        assert exported.tags.items() <= read["tags"].items()
        assert exported.figures.items() <= read["metrics"].items()
        assert [list(point) for point in exported.series["full_runs/eval_accuracy"]] == read[
            "curve"
        ]
    assert "promote" == runs[f"{TRIAL}-compile"]["tags"]["compilegate.verdict"]


def test_wandb_has_an_offline_run_per_arm(answers: dict[str, Any]) -> None:
    runs = answers["wandb"]

    assert {f"bert-docs-{TRIAL}-{arm}" for arm in expected()} == runs.keys()
    for arm, exported in expected().items():
        read = runs[f"bert-docs-{TRIAL}-{arm}"]
        assert {**exported.params, **exported.tags}.items() <= read["config"].items()
        assert exported.figures.items() <= read["summary"].items()
        assert [list(point) for point in exported.series["full_runs/eval_accuracy"]] == read[
            "curve"
        ]


def test_the_reference_parser_reads_the_metrics(answers: dict[str, Any]) -> None:
    families = answers["openmetrics"]

    assert "stateset" == families["compilegate_verdict"]["type"]
    ((described, one),) = families["compilegate_decision"]["samples"]
    assert (1.0, "promote", TRIAL) == (one, described["verdict"], described["trial"])
    bounds = {labels["bound"]: value for labels, value in
              families["compilegate_speedup_ratio"]["samples"]}  # fmt: skip
    speedup = expected()["compile"].figures
    assert {"estimate": speedup["speedup"], "low": speedup["speedup_low"],
            "high": speedup["speedup_high"]} == bounds  # fmt: skip
