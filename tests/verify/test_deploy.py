"""``verify-aws --deploy``: a stage that is deployed for the verification does not outlive it."""

from __future__ import annotations

import subprocess

import pytest
from typer.testing import CliRunner

from compilegate.cli import project
from compilegate.cli.main import app
from compilegate.cli.shell import Session
from compilegate.domain.errors import EnvironmentNotReadyError


class NoStage:
    """An account without a stack."""

    def aws(self, stage):
        raise EnvironmentNotReadyError(f"There is no stack compilegate-{stage}.")


@pytest.fixture
def targets(monkeypatch):
    """The make targets that were run."""
    called = []

    def run(command, **options):
        called.append(command[1])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return called


def invoke(*arguments):
    return CliRunner().invoke(app, ["verify-aws", *arguments], obj=Session(doors=NoStage()))


def test_a_stage_that_was_deployed_here_is_destroyed_whatever_happens(targets) -> None:
    result = invoke("--deploy", "--yes")

    assert result.exit_code == 1
    assert targets == ["deploy", "destroy"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        ([], 1, "There is no stack"),
        (["--yes"], 1, "There is no stack"),
        (["--deploy"], 2, "--yes"),
        (["--deploy", "--yes", "--stage", "another"], 2, "--stage"),
    ],
    ids=["not asked to", "not asked to, with yes", "nobody to ask", "not cdk.json's stage"],
)
def test_nothing_is_deployed_unasked(targets, arguments, exit_code, word) -> None:
    result = invoke(*arguments)

    assert result.exit_code == exit_code, result.output
    assert word in result.output
    assert not targets


def test_a_deployment_that_fails_is_removed_and_said(monkeypatch) -> None:
    called = []

    def run(command, **options):
        called.append((command[1], options["cwd"]))
        return subprocess.CompletedProcess(command, int(command[1] == "deploy"))

    monkeypatch.setattr(subprocess, "run", run)
    result = invoke("--deploy", "--yes")

    assert result.exit_code == 1
    assert "make deploy failed" in result.output
    assert called == [("deploy", project.REPOSITORY), ("destroy", project.REPOSITORY)]
