"""From somebody's script to a first try: init, check, two steps of its arms, without an edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, invoke, providers
from tests.training.jobs import FEW_FILES, PYTHON, QUICK

__all__ = ["invoke", "providers"]

# How the training data of each script is counted, where no Trainer or option counts steps.
SAMPLES = {"loop": 96}
EVERY = ["hf_trainer", "lightning_cli", "loop"]  # nano with both of its arms: below
pytestmark = [pytest.mark.training, pytest.mark.slow, pytest.mark.timeout(600)]


def tried(
    name: str, code: Path, invoke: Invoke, *options: str, python: Path = PYTHON
) -> list[dict]:
    samples = ("--training-samples", SAMPLES[name]) if name in SAMPLES else ()
    file = f"{name}.yaml"
    written = invoke("init", code / f"{name}.py", "--yes", "--output", file, *samples)
    assert 0 == written.exit_code, written.output
    assert invoke("check", file).exit_code in (0, 11)
    result = invoke("try", file, "--python", python, "--json", *options)
    arms = json.loads(result.stdout)["arms"]
    assert (0, ["ok"] * len(arms)) == (result.exit_code, [arm["outcome"] for arm in arms]), arms
    return arms


@pytest.mark.parametrize("name", EVERY)
def test_the_first_try_of_a_script_trains_and_reports(
    name: str, code: Path, invoke: Invoke
) -> None:
    (baseline,) = tried(name, code, invoke, "--arm", "baseline")

    trained_and_reported(name, baseline)


def trained_and_reported(name: str, arm: dict) -> None:
    assert 2 == arm["steps"]
    assert arm["metric"] is not None
    assert (name in ("hf_trainer", "lightning_cli")) == arm["outcomes"]


def test_both_arms_of_a_script_train_from_the_same_weights(code: Path, invoke: Invoke) -> None:
    quick = code.parent / "python"  # what init wrote is tried as it is
    variables = " ".join(f"{name}={value}" for name, value in {**QUICK, **FEW_FILES}.items())
    quick.write_text(f'#!/bin/sh\nexec env {variables} "{PYTHON}" "$@"\n')
    quick.chmod(0o755)
    baseline, compiled = tried("nano", code, invoke, python=quick)

    trained_and_reported("nano", baseline)
    assert baseline["initial_weights"] == compiled["initial_weights"]
    assert compiled["compile_seconds"] > 0
