"""From somebody's script to a first try: init, check, two steps of its arms, without an edit."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from compilegate_local import tryout
from tests.cli.conftest import Invoke, invoke, providers
from tests.training.jobs import PYTHON, SCRIPTS
from tests.training.test_launch import TRAINERS
from tools.docs.tutorial import PAGE, parts

__all__ = ["invoke", "providers"]

# How the training data of each script is counted, where no Trainer or option counts steps.
SAMPLES = {"loop": 96}
pytestmark = [pytest.mark.training, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def forked(jobs, monkeypatch):
    """What ``try`` starts is forked from the process that serves the other jobs."""

    def start(command, *, cwd, env, stdout, **_):
        words = [SCRIPTS / "few_files.py", "--program", cwd / command[1], *command[2:]]
        own = {**jobs._base, **env, "PWD": str(cwd)}
        return jobs._server.start([*map(str, words)], own, stdout.name)

    jobs.warm(*TRAINERS)
    monkeypatch.setattr(
        tryout, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": start})
    )


def tried(name: str, code: Path, invoke: Invoke, *options: str) -> list[dict]:
    samples = ("--training-samples", SAMPLES[name]) if name in SAMPLES else ()
    file = f"{name}.yaml"
    written = invoke("init", code / f"{name}.py", "--yes", "--output", file, *samples)
    assert 0 == written.exit_code, written.output
    assert invoke("check", file).exit_code in (0, 11)
    result = invoke("try", file, "--python", PYTHON, "--json", *options)
    arms = json.loads(result.stdout)["arms"]
    assert (0, ["ok"] * len(arms)) == (result.exit_code, [arm["outcome"] for arm in arms]), arms
    return arms


def test_the_first_try_of_a_script_trains_and_reports(code: Path, invoke: Invoke) -> None:
    """In an interpreter of its own."""
    (baseline,) = tried("loop", code, invoke, "--arm", "baseline")

    trained_and_reported("loop", baseline)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", ["hf_trainer", "lightning_cli"])
def test_the_first_try_of_a_trainers_script_trains_and_reports(
    name: str, code: Path, invoke: Invoke
) -> None:
    (baseline,) = tried(name, code, invoke, "--arm", "baseline")

    trained_and_reported(name, baseline)


def trained_and_reported(name: str, arm: dict) -> None:
    assert 2 == arm["steps"]
    assert arm["metric"] is not None
    assert (name in ("hf_trainer", "lightning_cli")) == arm["outcomes"]


@pytest.mark.usefixtures("forked")
def test_both_arms_of_a_script_train_from_the_same_weights(code: Path, invoke: Invoke) -> None:
    baseline, compiled = tried("nano", code, invoke)

    trained_and_reported("nano", baseline)
    assert baseline["initial_weights"] == compiled["initial_weights"]
    assert compiled["compile_seconds"] > 0


def test_the_tutorials_script_trains(jobs, tmp_path):
    script = tmp_path / "forecast.py"
    script.write_text(next(text for kind, text in parts(PAGE.read_text()) if kind == "python"))

    assert re.fullmatch(r"eval_loss: \d\.\d+\n", jobs.run(script, steps=3).output)
