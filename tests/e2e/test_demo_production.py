"""The month of ``demo-production`` in the deployed app, with the stand-in training script."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from compilegate.adapters.executions import StepFunctionsExecutions
from compilegate.adapters.workload_files import read_workload
from compilegate.cli.demo.production import ConsoleReporter
from compilegate.cli.demo.scenario import DemoScenario
from compilegate.cli.report import save_history
from compilegate.domain import naming
from tests.e2e.conftest import JOB, App, trial_document
from tests.e2e.test_register import cloud_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def workload_file(folder: Path, name: str) -> Path:
    """A workload of the stand-in script that a trial promotes."""
    shutil.copytree(JOB, folder / "job")
    document = trial_document(name)
    file = folder / "nightly.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_month_from_the_registration_to_the_revert(app: App, tmp_path: Path) -> None:
    name = f"month-{os.getpid() % 1000}"
    evaluate = StepFunctionsExecutions(
        app.client("stepfunctions"), app.outputs["EvaluateStateMachine"]
    )
    cloud = replace(cloud_of(app), executions=evaluate)
    silent = Console(quiet=True)
    file = read_workload(workload_file(tmp_path, name))
    scenario = DemoScenario(
        file, cloud, reporter=ConsoleReporter(silent), live=silent, reports=tmp_path
    )

    result = scenario.run()

    assert result.failure is None, result.failure
    assert result.outcome is not None
    assert "promote" == result.outcome.verdict
    arms = [run.view.begun.arm for run in result.runs if run.view.begun]
    whys = [run.view.begun.why for run in result.runs if run.view.begun]
    assert ["baseline", "compile", "compile", "compile", "compile"] == arms[:5]
    assert 6 == whys.count("confirm")
    assert ("baseline", "scheduled") == (arms[-1], whys[-1])
    page = save_history(name, cloud.services, tmp_path)
    history = json.loads(page.with_suffix(".json").read_text())
    assert "Turned back off" == history["label"]
    faulty = {run["arm"] for run in history["runs"] if run["injected_fault"]}
    assert {"compile"} == faulty
    # The app itself wrote the history when it sent the message about the revert.
    assert app.store.exists(f"s3://{app.store.bucket}/{naming.history_key(name, 'html')}")
