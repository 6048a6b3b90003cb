"""``make bootstrap``, ``deploy`` and ``destroy``, with a CDK command that only prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(target: str, *variables: str) -> subprocess.CompletedProcess[str]:
    """Run a target without a terminal; set-up is left out, the programs are replaced."""
    return subprocess.run(
        ["make", "-o", "setup", "-o", "build/.cdk", target, "CDK=echo cdk", *variables],
        check=False, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip


def test_bootstrap_needs_no_environment_in_words() -> None:
    assert "cdk bootstrap" in make("bootstrap").stdout.splitlines()


@pytest.mark.parametrize("target", ["deploy", "destroy"])
def test_without_a_terminal_nothing_starts_until_somebody_says_yes(target: str) -> None:
    result = make(target)

    assert 2 == result.returncode
    assert f"make {target} YES=1" in result.stderr
    assert f"cdk {target}" not in result.stdout.splitlines()


def test_an_answer_given_beforehand_is_passed_to_the_cdk() -> None:
    assert "cdk deploy --require-approval never" in make("deploy", "YES=1").stdout.splitlines()
