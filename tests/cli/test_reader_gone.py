"""Output: a reader that goes ends a command quietly; what an encoding lacks is shown by code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVIDENCE = "docs/examples/evidence.json"
FAILING = "judge no-such-file.json"
COMMANDS = (
    "--help",
    "facts images --json",
    f"judge --jsonl {EVIDENCE}",
    "check workloads --jsonl",
    "doctor training/families --sarif",
    FAILING,
)


def process(words, **streams):
    command = [sys.executable, "-m", "compilegate.cli.main", *words]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=60, **streams)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_whose_reader_has_gone_ends_quietly(command):
    no_reader, output = os.pipe()
    os.close(no_reader)
    errors = subprocess.PIPE if command != FAILING else output
    ended = process(command.split(), stdout=output, stderr=errors)
    os.close(output)

    assert 141 == ended.returncode  # 128 + SIGPIPE, as a shell reports cat or git
    assert not ended.stderr


def test_a_decision_is_printed_in_any_encoding():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    ended = process(("judge", EVIDENCE, "--explain"), env=environment, capture_output=True)

    assert (0, b"") == (ended.returncode, ended.stderr)
    assert b"bert-docs: turn it on (promote)" in ended.stdout
    assert b"\\u" in ended.stdout
