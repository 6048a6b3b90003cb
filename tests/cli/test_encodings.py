"""Every command prints on every terminal: what an encoding lacks is shown by its code."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = str(ROOT / "docs" / "examples" / "evidence.json")


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
