"""A fresh checkout has no data: the error names file, field and the command that makes it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from compilegate.adapters.workload_files import PYTHON

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"write the data with `([^`]+)`")
SHIPPED = ["demo-classifier", "demo-lm", "demo-tabular", "nightly-lm"]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """What git brings of the shipped workloads, and the training environment."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "training", folder / "training")
    (folder / "workloads").mkdir()
    for file in (ROOT / "workloads").glob("*.yaml"):
        shutil.copy(file, folder / "workloads")
    (folder / PYTHON.parts[0]).symlink_to(ROOT / PYTHON.parts[0])
    return folder


@pytest.mark.parametrize("file", sorted((ROOT / "workloads").glob("*.yaml")), ids=lambda f: f.stem)
def test_a_shipped_workload_is_checked_before_its_data_is_there(file, checkout, invoke):
    checked, planned = (
        invoke(command, checkout / "workloads" / file.name, "--json")
        for command in ("check", "plan")
    )

    document = json.loads(checked.stdout)
    reasons = [*document["reasons"], *(r for c in document["candidates"] for r in c["reasons"])]
    assert {checked.exit_code, planned.exit_code} <= {0, 10, 11}, planned.output
    assert "trial_over_budget" not in {reason["code"] for reason in reasons}


@pytest.mark.training
def test_the_command_makes_what_every_shipped_workload_reads(checkout, invoke):
    missing = invoke("run", checkout / "workloads" / "demo-lm.yaml").stderr
    (command,) = set(COMMAND.findall(missing))

    subprocess.run(["bash", "-c", command], check=True, capture_output=True, timeout=120)

    for name in SHIPPED:
        assert 2 != invoke("check", checkout / "workloads" / f"{name}.yaml").exit_code
