"""What surrounds every command: help, version, one message per error, no traceback."""

import json

import pytest
import typer
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ProfileNotFound,
    SSOTokenLoadError,
)

from compilegate import __version__
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


def leaves(group, prefix=()):
    nested = getattr(group, "list_commands", None)
    names = nested(None) if nested else ()
    found = [leaves(group.get_command(None, name), (*prefix, name)) for name in names]
    return [leaf for below in found for leaf in below] or [prefix]


@pytest.mark.parametrize("command", leaves(typer.main.get_command(app)), ids=" ".join)
def test_every_command_has_help_with_an_example_and_takes_json(command, invoke):
    result = invoke(*command, "--help")

    assert 0 == result.exit_code
    assert f"  compilegate {' '.join(command)}" in result.stdout.replace("\n    ", "\n  ")
    assert "--json" in result.stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_the_version(invoke):
    assert f"compilegate {__version__}\n" == invoke("--version").stdout


def refused(code):
    return ClientError({"Error": {"Code": code, "Message": "m"}}, "X")


ERROR_KEYS = {"file", "field", "value", "problem", "fix", "line", "kind"}
# Each error: its kind, the exit code, how problem and fix begin, None where there is no fix.
ERRORS = [
    (InvalidInputError("is wrong", field="f", fix="b"), "bad_input", 2, "is wrong", "b"),
    (InvalidEvidenceError("is wrong"), "invalid_evidence", 13, "is wrong", None),
    (NotFoundError("is not there"), "not_found", 1, "is not there", None),
    (WorkloadLockedError("is locked"), "locked", 1, "is locked", None),
    (DrainedError("a. Fix: b", fix="c"), "drained", 1, "a. Fix: b", "c"),
    (DrainedError("a. Fix: b"), "drained", 1, "a. Fix: b", None),
    (NoStackError("is not deployed", fix="d."), "not_ready", 1, "is not deployed", "d"),
    (CloudEndedError("has ended"), "not_ready", 1, "has ended", None),
    (NotReadyError("It does not run", fix="start it."), "not_ready", 1, "It does", "start it"),
    (ModuleNotFoundError("No module", name="compilegate_localcloud"), "not_ready", 1,
     "The package compilegate-localcloud is not", "pip install"),
    (ModuleNotFoundError("No module", name="compilegate_other"), "unexpected", 1,
     "ModuleNotFoundError: No module\nFor a traceback: compilegate --debug", None),
    (UnreadableRecordError("of another schema"), "unreadable_record", 1, "of another", None),
    (NoCredentialsError(), "aws", 1, "there are no usable AWS credentials (", "run `aws config"),
    (SSOTokenLoadError(error_msg="m"), "aws", 1, "there are no usable AWS cred", "run `aws config"),
    (ProfileNotFound(profile="p"), "aws", 1, "The config profile (p)", "correct AWS_PROFILE"),
    (EndpointConnectionError(endpoint_url="u"), "aws", 1, "Could not connect", "check the network"),
    (refused("ExpiredToken"), "aws", 1, "AWS does not accept the credentials (Ex", "renew them"),
    (refused("AccessDenied"), "aws", 1, "the credentials lack a permission: An", "use a role"),
    (refused("Odd"), "aws", 1, "AWS refused the request: An error", None),
    (ZeroDivisionError("a. Fix: b"), "unexpected", 1, "ZeroDivisionError: a. Fix: b\nFor", None),
]  # fmt: skip


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: type(case[0]).__name__)
def test_every_error_is_one_message_and_with_json_one_document_too(case, invoke, providers):
    error, kind, code, problem, fix = case

    def failing(stage):
        raise error

    providers.aws = failing

    shown, asked = invoke("status"), invoke("status", "--json")

    document = json.loads(asked.stdout)
    first = document["error"]
    assert (code, code, "") == (shown.exit_code, asked.exit_code, shown.stdout)
    assert shown.stderr == asked.stderr
    assert "Traceback" not in shown.output
    assert [first] == document["errors"]
    assert (ERROR_KEYS, kind) == (first.keys(), first["kind"])
    assert first["problem"] in shown.stderr
    assert first["problem"].startswith(problem)
    assert (fix is None) == (first["fix"] is None)
    assert (first["fix"] or "").startswith(fix or "")


@pytest.mark.parametrize("command", leaves(typer.main.get_command(app)), ids=" ".join)
def test_a_wrong_command_line_is_a_document_wherever_json_stands(command, invoke):
    for words in (
        (*command, "--json", "--no-such-option"),
        (*command, "--no-such-option", "--json"),
    ):
        result = invoke(*words)

        error = json.loads(result.stdout)["error"]
        assert (2, "bad_input") == (result.exit_code, error["kind"])
        assert "No such option: --no-such-option" in error["problem"]
        assert "No such option: --no-such-option" in result.stderr


@pytest.mark.parametrize("switch", ["option", "variable"])
def test_debug_shows_the_traceback(switch, invoke, monkeypatch):
    if switch == "variable":
        monkeypatch.setenv("COMPILEGATE_DEBUG", "1")
    options = ("--debug",) if switch == "option" else ()

    result = invoke(*options, "status")

    assert result.exception is not None
    assert "EnvironmentNotReadyError" == type(result.exception).__name__


def test_an_error_is_wrapped_at_words_on_a_terminal_only(monkeypatch):
    message = "workload.yaml: training.batch_size: " + "is far too large " * 6
    monkeypatch.setenv("COLUMNS", "40")
    whole = error_text(message.strip())
    monkeypatch.setenv("FORCE_COLOR", "1")
    wrapped = error_text(message.strip())

    assert f"Error: {message.strip()}" == whole
    assert wrapped.split() == whole.split()
    assert max(map(len, wrapped.splitlines())) <= 40
    assert all(line.startswith("  ") for line in wrapped.splitlines()[1:])


@pytest.mark.parametrize("columns", ["40", "80"])
@pytest.mark.parametrize("group", [(), ("facts",), ("flag",), ("local",)], ids=" ".join)
def test_no_summary_of_a_command_is_cut(group, columns, invoke, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)

    summaries = invoke(*group, "--help").stdout.partition("--help")[2].splitlines()

    assert summaries
    assert [line for line in summaries if line.endswith("...") or len(line) > int(columns)] == []
