"""What is on file is what the SDK says, asked again in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.stored import CAPTURED

ROOT = Path(__file__).parents[2]
UNREACHABLE = ("error sending request", "failed to fetch", "dns error", "connect error")


def run(*arguments, timeout=500):
    environment = {**os.environ, "SAGEMAKER_SUPPRESS_V2_WARNING": "1"}
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)  # it installs the SDK
def test_the_sdk_says_again_what_is_on_file(tmp_path):
    built = run("make", "-s", "build/.sdk", f"PYTHON={sys.executable}")
    if built.returncode and any(words in built.stderr.lower() for words in UNREACHABLE):
        pytest.skip("the package registry cannot be reached, so the SDK cannot be installed")
    assert 0 == built.returncode, built.stderr

    again = tmp_path / "captured.json"
    captured = run(".venv-sdk/bin/python", "-m", "tests.conformance.capture", str(again))

    assert 0 == captured.returncode, captured.stderr[-2000:]
    assert CAPTURED.read_text() == again.read_text()
