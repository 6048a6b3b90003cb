"""Output: a reader that goes ends a command quietly; what an encoding lacks is shown by code."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EVIDENCE = "docs/examples/evidence.json"
COMMANDS = (
    "--help",
    "--version",
    "flag --help",
    "schema",
    "facts images",
    "facts images --json",
    f"judge {EVIDENCE}",
    f"judge {EVIDENCE} --json",
    f"judge {EVIDENCE} --explain",
    f"judge --jsonl {EVIDENCE}",
    "judge --plan --spread 0.003 --margin 0.005",
    "check workloads",
    "check workloads --jsonl",
    "plan workloads/article-bert.yaml",
    "doctor training/families --sarif",
)
GONE = [141, ""]  # 128 + SIGPIPE, as a shell reports cat or git


def ended(commands, *options):
    """Exit code and standard error of commands whose standard output nobody reads."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.cli.no_reader", *options],
        input=json.dumps([command.split() for command in commands]),
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return dict(zip(commands, json.loads(result.stdout), strict=True))


def test_a_command_whose_reader_has_gone_ends_quietly():
    assert dict.fromkeys(COMMANDS, GONE) == ended(COMMANDS)


def test_so_does_one_whose_errors_go_to_the_same_reader():
    failing = ("judge no-such-file.json",)

    assert dict.fromkeys(failing, GONE) == ended(failing, "stderr_too")


def test_an_error_is_still_told_where_only_standard_output_has_no_reader():
    code, error = ended(("judge no-such-file.json",))["judge no-such-file.json"]

    assert 2 == code
    assert str(error).startswith("Error: no-such-file.json: is not a file")


def test_in_a_shell_an_endless_stream_ends_with_its_reader():
    command = f"'{sys.executable}' -m compilegate.cli.main judge --jsonl -"

    result = subprocess.run(
        ["bash", "-c", f'yes "{{}}" | {command} | head -n 1; echo "${{PIPESTATUS[*]}}"'],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    decision, statuses = result.stdout.splitlines()
    assert ("141 141 0", "") == (statuses, result.stderr)
    assert "invalid" == json.loads(decision)["verdict"]


def run(*words, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "80"}
    command = [sys.executable, "-m", "compilegate.cli.main", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)


def test_a_decision_is_printed_in_any_encoding():
    told = run("judge", EVIDENCE, "--explain", encoding="ascii")

    assert (0, b"") == (told.returncode, told.stderr)
    assert b"bert-docs: turn it on (promote)" in told.stdout
    assert b"\\u" in told.stdout


def test_so_is_the_name_of_a_file_that_is_not_there():
    told = run("judge", os.fsdecode(b"no-\xff-" + b"x" * 5200), encoding="ascii")

    assert (2, b"") == (told.returncode, told.stdout)
    assert told.stderr.startswith(b"Error: ")
    assert len(told.stderr) < 1000
