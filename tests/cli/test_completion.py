"""Shells complete commands, options and names of workloads, without asking a cloud."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.project import write_project

ROOT = Path(__file__).parents[2]
KEPT = Path(".compilegate/trials")


def command(*words, **variables):
    """Standard output of the command as a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "compilegate.cli.main", *words], env={**os.environ, **variables},
        capture_output=True, text=True, timeout=60, check=True, cwd=ROOT,
    )  # fmt: skip
    return result.stdout


def completed(words, invoke, monkeypatch):
    """What the shell is answered for the words, the last of them incomplete."""
    monkeypatch.setenv("_ROOT_COMPLETE", "complete_bash")  # the runner's name for the command
    monkeypatch.setenv("COMP_WORDS", f"compilegate {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    return invoke().stdout.split()


def test_commands_and_options_are_completed(invoke, monkeypatch):
    assert ["run", "report", "register"] == completed("r", invoke, monkeypatch)
    assert "--jsonl" in completed("judge --js", invoke, monkeypatch)
    assert ["junit"] == completed("export --to ju", invoke, monkeypatch)


@pytest.mark.parametrize("reader", ["flag show", "status", "unlock"])
def test_so_are_workloads_of_files_and_of_kept_trials(reader, invoke, monkeypatch, tmp_path):
    write_project(tmp_path)
    (tmp_path / "no-text.yaml").write_bytes(b"\xff\xfe")
    (KEPT / "bert-other-0mabc123").mkdir(parents=True)
    (KEPT / "lm-0mabc123").mkdir()

    assert ["bert-docs", "bert-other"] == completed(f"{reader} bert", invoke, monkeypatch)


def test_the_command_itself_answers_the_variable_that_its_scripts_set():
    asked = {"COMP_WORDS": "compilegate fl", "COMP_CWORD": "1"}

    assert "flag\n" == command(_COMPILEGATE_COMPLETE="complete_bash", **asked)
