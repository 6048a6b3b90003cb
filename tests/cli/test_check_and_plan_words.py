"""What ``check`` and ``plan`` say of prices, launchers and candidates that are one job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.cli.project import write_project
from tests.cli.test_check_and_plan import BF16, SEVERAL

XLA_PAIR = (
    "    framework: {name: pytorch",
    "    distribution: pytorchxla\n    framework: {name: pytorch",
)
ONE_JOB = """candidates:
  - {name: ddp, distribution: pytorchddp}
  - {name: smddp, distribution: smddp}
  - {name: alone, distribution: none}
quality:"""
OLD = (
    ('version: "2.13.0"', 'version: "2.1.0"'),
    ("ml.g5.xlarge", "ml.p4d.24xlarge"),
    ("distribution: none", "distribution: torch_distributed"),
)


def test_prices_of_another_region_are_told_by_check_and_plan(
    tmp_path: Path, invoke: Invoke
) -> None:
    file = write_project(tmp_path, BF16, ("ml.g5.xlarge", "ml.g4dn.xlarge"))
    checked = " ".join(invoke("check", file, "--region", "eu-west-1").stdout.split())
    planned = " ".join(invoke("plan", file, "--region", "eu-west-1").stdout.split())
    same = invoke("plan", file, "--region", "us-west-2").stdout

    assert "of us-west-2; the job's region is eu-west-1" in checked
    assert "Prices of us-west-2: ml.g4dn.xlarge. The job's region is eu-west-1" in planned
    assert "Prices of" not in same


def test_of_two_candidates_that_are_one_job_the_second_is_left_out(
    tmp_path: Path, invoke: Invoke
) -> None:
    cap = ("quality:", "policy: {max_trial_usd: 100000}\nquality:")
    file = write_project(tmp_path, BF16, *OLD, ("quality:", ONE_JOB), cap)
    plan = json.loads(invoke("plan", file, "--json").stdout)
    table = invoke("plan", file).stdout

    assert ["baseline", "ddp", "alone"] == [arm["name"] for arm in plan["arms"]]
    assert ["smddp"] == [left["name"] for left in plan["left_out"]]
    assert "the same job as ddp" in plan["left_out"][0]["why"]
    assert "one factor: no launcher" in " ".join(table.split())


def test_the_managed_compilers_own_launcher_is_no_second_change(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # so that no cell is wrapped
    table = invoke("plan", write_project(tmp_path, *SEVERAL, XLA_PAIR)).stdout

    assert "managed compiler (by pytorchxla)" in " ".join(table.split())


def test_compiling_that_costs_nothing_pays_from_the_first_minute(
    tmp_path: Path, invoke: Invoke
) -> None:
    free = ("quality:", "profile: {compile_seconds: 0, compile_seconds_cold: 0}\nquality:")
    text = " ".join(invoke("check", write_project(tmp_path, BF16, free)).stdout.split())

    assert "a run pays off from the first minute at best (compiling: 0 s, measured)" in text
