"""Environments of other tools, which the tests that need one make with `make`."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UNREACHABLE = ("error sending request", "failed to fetch", "dns error", "connect error")
SECONDS = 500


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the checkout."""
    environment = {**os.environ, "SAGEMAKER_SUPPRESS_V2_WARNING": "1", **variables}
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip


def asked(name: str, *arguments: str | Path, **variables: str) -> None:
    """Runs Python in the environment of requirements/NAME.lock, which must succeed.

    Skips the test where the environment is missing and no package registry can be reached.
    """
    with (ROOT / "build" / f"{name}.lock").open("w") as lock:
        # Test processes side by side would install into the same folder.
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = run("make", "-s", f"build/.{name}", f"PYTHON={sys.executable}")
    if made.returncode and any(words in made.stderr.lower() for words in UNREACHABLE):
        pytest.skip(f"the package registry cannot be reached, so .venv-{name} cannot be made")
    assert 0 == made.returncode, made.stderr
    ran = run(f".venv-{name}/bin/python", *arguments, **variables)
    assert 0 == ran.returncode, ran.stdout[-2000:] + ran.stderr[-3000:]
