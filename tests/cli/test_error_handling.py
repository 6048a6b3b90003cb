"""What surrounds every command: help, version, one message per error, no traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from botocore.exceptions import ClientError, NoCredentialsError

from compilegate import __version__
from compilegate.cli.common.error_handling import exit_code, explain
from compilegate.cli.common.output import error_text
from compilegate.cli.main import app
from compilegate.domain.errors import (
    DrainedError,
    InvalidEvidenceError,
    InvalidInputError,
    NoStackError,
    NotFoundError,
    UnreadableRecordError,
    WorkloadLockedError,
)
from compilegate_localcloud.errors import CloudEndedError, NotReadyError
from tests.cli.conftest import Invoke
from tests.fake_clouds import FakeProviders


def leaves(group: typer.Typer, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    commands = [(*prefix, str(command.name)) for command in group.registered_commands]
    for nested in group.registered_groups:
        assert nested.typer_instance is not None
        commands += leaves(nested.typer_instance, (*prefix, str(nested.name)))
    return commands


@pytest.mark.parametrize("command", leaves(app), ids=" ".join)
def test_every_command_has_help_with_an_example_and_takes_json(
    command: tuple[str, ...], invoke: Invoke
) -> None:
    result = invoke(*command, "--help")

    assert 0 == result.exit_code
    assert f"  compilegate {' '.join(command)}" in result.stdout.replace("\n    ", "\n  ")
    assert "--json" in result.stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_the_version(invoke: Invoke) -> None:
    assert f"compilegate {__version__}\n" == invoke("--version").stdout


def test_a_missing_stack_is_one_message_with_the_next_step(invoke: Invoke) -> None:
    result = invoke("status", "--stage", "beta")

    assert (1, "") == (result.exit_code, result.stdout)
    assert "Error: There is no stack compilegate-beta. Fix: deploy it\n" == result.stderr


def test_an_unexpected_error_is_one_message_too(
    invoke: Invoke, providers: FakeProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(stage: str) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(providers, "aws", broken)

    result = invoke("status")

    assert 1 == result.exit_code
    assert result.stderr.startswith("Error: ZeroDivisionError: by zero\n")
    assert "--debug" in result.stderr
    assert "Traceback" not in result.output


ERROR_KEYS = {"file", "field", "value", "problem", "fix", "line", "kind"}


def failing(error: Exception) -> Callable[[str], None]:
    def opened(stage: str) -> None:
        raise error

    return opened


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (InvalidInputError("is wrong", field="f"), "bad_input", 2),
        (InvalidEvidenceError("is wrong"), "invalid_evidence", 13),
        (NotFoundError("is not there"), "not_found", 1),
        (WorkloadLockedError("is locked"), "locked", 1),
        (DrainedError("is drained"), "drained", 1),
        (NoStackError("is not deployed"), "not_ready", 1),
        (CloudEndedError("has ended"), "not_ready", 1),
        (ModuleNotFoundError("No module", name="compilegate_localcloud"), "not_ready", 1),
        (ModuleNotFoundError("No module", name="compilegate_other"), "unexpected", 1),
        (UnreadableRecordError("of another schema"), "unreadable_record", 1),
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "m"}}, "X"), "aws", 1),
        (ZeroDivisionError("by zero"), "unexpected", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_with_json_every_error_is_one_document_too(
    error: Exception, kind: str, code: int, invoke: Invoke, providers: FakeProviders,
) -> None:  # fmt: skip
    providers.aws = failing(error)  # type: ignore[method-assign, assignment]

    shown, asked = invoke("status"), invoke("status", "--json")

    document = json.loads(asked.stdout)
    assert (code, code, "") == (shown.exit_code, asked.exit_code, shown.stdout)
    assert shown.stderr == asked.stderr
    assert [document["error"]] == document["errors"]
    assert (ERROR_KEYS, kind) == (document["error"].keys(), document["error"]["kind"])
    assert document["error"]["problem"] in shown.stderr


@pytest.mark.parametrize(
    ("error", "problem", "fix"),
    [
        (NoCredentialsError(), "there are no usable AWS credentials", "run `aws configure`"),
        (NotReadyError("It does not run", fix="start it."), "It does not run", "start it"),
        (NotReadyError("It does not run"), "It does not run", None),
        (DrainedError("a. Fix: b", fix="c"), "a. Fix: b", "c"),
        (DrainedError("a. Fix: b"), "a. Fix: b", None),
        (NoStackError("is not deployed"), "is not deployed", None),
        (ZeroDivisionError("a. Fix: b"), "ZeroDivisionError: a. Fix: b", None),
    ],
    ids=lambda value: "",
)
def test_a_program_gets_the_fix_apart_from_the_problem(
    error: Exception, problem: str, fix: str | None, invoke: Invoke, providers: FakeProviders
) -> None:
    providers.aws = failing(error)  # type: ignore[method-assign, assignment]

    result = invoke("status", "--json")

    found = json.loads(result.stdout)["error"]
    assert found["problem"].startswith(problem)
    assert f"Error: {error}" in result.stderr or found["kind"] != "not_ready"
    assert (fix is None) == (found["fix"] is None)
    assert (found["fix"] or "").startswith(fix or "")


@pytest.mark.parametrize("command", leaves(app), ids=" ".join)
def test_a_wrong_command_line_is_a_document_wherever_json_stands(
    command: tuple[str, ...], invoke: Invoke
) -> None:
    for words in (
        (*command, "--json", "--no-such-option"),
        (*command, "--no-such-option", "--json"),
    ):
        result = invoke(*words)

        error = json.loads(result.stdout)["error"]
        assert (2, "bad_input") == (result.exit_code, error["kind"])
        assert "No such option: --no-such-option" in error["problem"]
        assert "No such option: --no-such-option" in result.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("no-such-command", "--json"), "No such command 'no-such-command'."),
        (("flag", "show", "--json"), "Missing argument 'WORKLOAD'."),
        (("flag", "--json", "show"), "No such option: --json"),
    ],
)
def test_so_is_a_wrong_command_or_a_missing_argument(
    words: tuple[str, ...], problem: str, invoke: Invoke
) -> None:
    result = invoke(*words)

    assert (2, problem) == (result.exit_code, json.loads(result.stdout)["error"]["problem"])


def test_after_two_dashes_json_is_a_name(invoke: Invoke) -> None:
    result = invoke("judge", "--", "--json")

    assert (2, "") == (result.exit_code, result.stdout)


@pytest.mark.parametrize("switch", ["option", "variable"])
def test_debug_shows_the_traceback(
    switch: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    if switch == "variable":
        monkeypatch.setenv("COMPILEGATE_DEBUG", "1")
    options = ("--debug",) if switch == "option" else ()

    result = invoke(*options, "status")

    assert result.exception is not None
    assert "EnvironmentNotReadyError" == type(result.exception).__name__


def test_ctrl_c_is_130_without_a_traceback(
    invoke: Invoke, providers: FakeProviders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(stage: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(providers, "aws", interrupted)

    result = invoke("status")

    assert (130, "Stopped.\n") == (result.exit_code, result.stderr)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInputError("is wrong"), 2),
        (InvalidEvidenceError("is wrong"), 13),
        (NotFoundError("is not there"), 1),
        (RuntimeError("oops"), 1),
    ],
)
def test_exit_codes_of_errors(error: Exception, code: int) -> None:
    assert code == exit_code(error)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NoCredentialsError(), "no usable AWS credentials"),
        (ClientError({"Error": {"Code": "ExpiredToken", "Message": "m"}}, "X"), "renew them"),
        (
            ClientError({"Error": {"Code": "AccessDenied", "Message": "m"}}, "X"),
            "lack a perm",
        ),
        (ClientError({"Error": {"Code": "Odd", "Message": "m"}}, "X"), "AWS refused"),
    ],
)
def test_what_aws_refuses_comes_with_a_next_step(error: Exception, message: str) -> None:
    assert message in str(explain(error))


def test_an_error_is_wrapped_at_words_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "workload.yaml: training.batch_size: " + "is far too large " * 6
    monkeypatch.setenv("COLUMNS", "40")
    whole = error_text(message.strip())
    monkeypatch.setenv("FORCE_COLOR", "1")
    wrapped = error_text(message.strip())

    assert f"Error: {message.strip()}" == whole
    assert wrapped.split() == whole.split()
    assert max(map(len, wrapped.splitlines())) <= 40
    assert all(line.startswith("  ") for line in wrapped.splitlines()[1:])


def test_warnings_that_adapters_log_do_not_reach_the_screen() -> None:
    script = (
        "import logging\n"
        "from typer.testing import CliRunner\n"
        "from compilegate.cli.main import app\n"
        "assert 0 == CliRunner().invoke(app, ['facts', 'limits']).exit_code\n"
        "logging.getLogger('compilegate.adapters.sagemaker').warning('not for people')\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )

    assert "" == result.stderr


@pytest.mark.parametrize("columns", ["40", "80"])
@pytest.mark.parametrize("group", [(), ("facts",), ("flag",), ("local",)], ids=" ".join)
def test_no_summary_of_a_command_is_cut(
    group: tuple[str, ...], columns: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    summaries = invoke(*group, "--help").stdout.partition("\nCommands:\n")[2].splitlines()

    assert summaries
    assert [line for line in summaries if line.endswith("...") or len(line) > int(columns)] == []


def test_every_workload_file_in_the_help_exists(invoke: Invoke) -> None:
    root = Path(__file__).parents[2]
    texts = [invoke(*command, "--help").stdout for command in leaves(app)]
    named = {file for text in texts for file in re.findall(r"\bworkloads/[\w-]+\.yaml", text)}

    assert "workloads/article-bert.yaml" in named
    assert ["workloads/my-job.yaml"] == [file for file in named if not (root / file).is_file()]
