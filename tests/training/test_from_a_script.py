"""From somebody's script to a first try: init, check, two steps of its arms, without an edit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, invoke, providers
from tests.cli.test_try_requirements import WHEEL, bundle
from tests.training.jobs import FEW_FILES, PYTHON, QUICK

__all__ = ["invoke", "providers"]

# How the training data of each script is counted, where no Trainer or option counts steps.
SAMPLES = {"loop": 96}
# The others are tried below: nano with both of its arms, loop with what it lists.
EVERY = ["hf_trainer", "lightning_cli", "accelerate_loop"]
pytestmark = [pytest.mark.training, pytest.mark.slow, pytest.mark.timeout(600)]


def tried(
    name: str, code: Path, invoke: Invoke, *options: str, python: Path | None = PYTHON
) -> list[dict]:
    samples = ("--training-samples", SAMPLES[name]) if name in SAMPLES else ()
    file = f"{name}.yaml"
    written = invoke("init", code / f"{name}.py", "--yes", "--output", file, *samples)
    assert 0 == written.exit_code, written.output
    assert invoke("check", file).exit_code in (0, 11)
    with_python = () if python is None else ("--python", python)
    result = invoke("try", file, *with_python, "--json", *options)
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


def test_what_a_script_lists_is_installed_first(code: Path, invoke: Invoke) -> None:
    bundle(code.parent / "lists", f"./{WHEEL}")
    for name in (WHEEL, "requirements.txt"):
        shutil.copy(code.parent / "lists" / name, code)
    script = code / "loop.py"
    script.write_text("import small\n" + script.read_text())

    (baseline,) = tried("loop", code, invoke, "--arm", "baseline", python=None)

    trained_and_reported("loop", baseline)


def test_both_arms_of_a_script_train_from_the_same_weights(code: Path, invoke: Invoke) -> None:
    quick = code.parent / "python"  # what init wrote is tried as it is
    variables = " ".join(f"{name}={value}" for name, value in {**QUICK, **FEW_FILES}.items())
    quick.write_text(f'#!/bin/sh\nexec env {variables} "{PYTHON}" "$@"\n')
    quick.chmod(0o755)
    baseline, compiled = tried("nano", code, invoke, python=quick)

    trained_and_reported("nano", baseline)
    assert baseline["initial_weights"] == compiled["initial_weights"]
    assert compiled["compile_seconds"] > 0
