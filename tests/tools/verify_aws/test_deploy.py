"""``make verify-aws``: a stage that is deployed for the verification does not outlive it."""

from __future__ import annotations

import subprocess

import pytest
from typer.testing import CliRunner

from compilegate.cli.common.session import Session
from compilegate.domain.errors import EnvironmentNotReadyError, NoStackError, NotDeployedError
from compilegate.place import PROJECT
from tools.verify_aws.__main__ import app


class Account:
    """An account with no stack, or with one that this release cannot use."""

    def __init__(self, error):
        self.error = error

    def aws(self, stage):
        raise self.error


class Targets(list):
    """The make targets that were run; ``failing`` is one that fails."""

    def __init__(self):
        super().__init__()
        self.failing, self.options = None, []

    def run(self, command, **options):
        self.append(command[1])
        self.options.append(options)
        return subprocess.CompletedProcess(command, int(command[1] == self.failing))


@pytest.fixture
def targets(monkeypatch):
    made = Targets()
    monkeypatch.setattr(subprocess, "run", made.run)
    return made


def invoke(*arguments, error=None):
    providers = Account(error or NoStackError("There is no stack compilegate-prod."))
    return CliRunner().invoke(app, list(arguments), obj=Session(providers=providers))


@pytest.mark.parametrize(("failing", "says"), [(None, ""), ("deploy", "make deploy failed")])
def test_a_stage_that_was_deployed_here_is_destroyed_whatever_happens(
    targets, failing, says
) -> None:
    """What make prints is no part of the JSON document."""
    targets.failing = failing
    result = invoke("--deploy", "--yes", "--json")

    assert result.exit_code == 1
    assert says in result.output
    assert targets == ["deploy", "destroy"]
    assert {PROJECT} == {options["cwd"] for options in targets.options}
    assert None not in [options.get("stdout") for options in targets.options]


@pytest.mark.parametrize(
    "error",
    [
        EnvironmentNotReadyError("The stack compilegate-prod was deployed by another release"),
        NotDeployedError("The stack compilegate-prod in us-east-1 is not in use"),
    ],
    ids=["another release", "being created"],
)
def test_a_stack_that_is_there_is_neither_updated_nor_destroyed(targets, error) -> None:
    result = invoke("--deploy", "--yes", error=error)

    assert result.exit_code == 1
    assert str(error) in " ".join(result.output.split())
    assert not targets


def test_a_stage_in_another_region_than_the_shells_is_neither_updated_nor_destroyed(
    targets, monkeypatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    result = invoke("--deploy", "--yes")

    assert result.exit_code == 2
    assert "eu-central-1" in result.output
    assert not targets


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
