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

from compilegate.adapters.state_machines import StepFunctionsExecutions
from compilegate.adapters.workload_files import read_workload
from compilegate.cli.report import save_history
from compilegate.domain import naming
from compilegate_local.demo import Month
from tests.e2e.conftest import JOB, App, trial_document
from tests.e2e.test_register import cloud_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_a_month_from_the_registration_to_the_revert(app: App, tmp_path: Path) -> None:
    name = f"month-{os.getpid() % 1000}"
    shutil.copytree(JOB, tmp_path / "job")
    file = tmp_path / "nightly.yaml"
    file.write_text(yaml.safe_dump(trial_document(name)))
    evaluate = StepFunctionsExecutions(
        app.client("stepfunctions"), app.outputs["EvaluateStateMachine"]
    )
    cloud = replace(cloud_of(app), executions=evaluate)
    result = Month(read_workload(file), cloud, Console(quiet=True), reports=tmp_path)

    result.run()

    assert result.wrong is None, result.wrong
    assert result.outcome is not None
    assert "promote" == result.outcome.verdict
    arms = [night["arm"] for night in result.runs]
    whys = [night["why"] for night in result.runs]
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
