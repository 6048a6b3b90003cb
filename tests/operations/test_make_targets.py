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


@pytest.mark.parametrize("target", ["deploy", "destroy"])
def test_without_a_terminal_nothing_starts_until_somebody_says_yes(target: str) -> None:
    result = make(target)

    assert 2 == result.returncode
    assert f"make {target} YES=1" in result.stderr
    assert f"cdk {target}" not in result.stdout.splitlines()


def test_a_stack_that_is_in_use_is_not_destroyed() -> None:
    result = make("destroy", "YES=1", "CONFIGURED=false")

    assert 2 == result.returncode
    assert "cdk destroy --force" not in result.stdout.splitlines()


@pytest.mark.parametrize("variables", [("CONFIGURED=true",), ("SKIP_DRAIN_CHECK=1",)])
def test_an_idle_one_is_or_one_whose_check_is_skipped_on_purpose(
    variables: tuple[str, ...],
) -> None:
    result = make("destroy", "YES=1", "CONFIGURED=false", *variables)

    assert "cdk destroy --force" in result.stdout.splitlines()
    assert 0 == result.returncode


def test_the_check_is_of_the_stage_and_region_that_are_destroyed() -> None:
    shown = subprocess.run(
        ["make", "-n", "-o", "setup", "-o", "build/.cdk", "destroy"],
        check=True, cwd=ROOT, capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip

    assert "-u AWS_REGION -u AWS_DEFAULT_REGION -u COMPILEGATE_STAGE" in shown
    assert "compilegate drain --check" in shown


def test_an_account_that_is_not_bootstrapped_is_reported_before_the_cdk_starts() -> None:
    result = make("deploy", "YES=1", "CONFIGURED=false")

    assert 2 == result.returncode
    assert "--deployment --only bootstrap" in result.stdout
    assert "cdk deploy --require-approval never" not in result.stdout.splitlines()
