"""``compilegate synth``: what it hands to the app, and what it says where the app fails."""

import importlib.util
import json
import subprocess
from types import SimpleNamespace

import pytest

from compilegate.place import PROJECT


@pytest.fixture
def started(monkeypatch):
    """Variables of every app that was started; none is."""
    seen = []

    def run(command, *, env, **_):
        assert str(PROJECT / "app.py") == command[1]
        seen.append(env)
        return SimpleNamespace(returncode=int(env.get("FAILS", "0")))

    monkeypatch.setattr(subprocess, "run", run)
    for name in ("CDK_OUTDIR", "CDK_CONTEXT_JSON"):
        monkeypatch.delenv(name, raising=False)
    return seen


def test_it_reads_the_folder_s_own_project_file(started, tmp_path, monkeypatch, invoke):
    (tmp_path / "cdk.json").write_text('{"app": "compilegate synth", "context": {"stage": "dev"}}')

    result = invoke("synth", "--json")

    assert {"assembly": str(tmp_path / "cdk.out")} == json.loads(result.stdout)
    (variables,) = started
    assert {"stage": "dev"} == json.loads(variables["CDK_CONTEXT_JSON"])


def test_what_the_cdk_command_hands_over_goes_before_it(started, tmp_path, monkeypatch, invoke):
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "theirs"))
    monkeypatch.setenv("CDK_CONTEXT_JSON", '{"stage": "test"}')

    invoke("synth")

    (variables,) = started
    assert (str(tmp_path / "theirs"), '{"stage": "test"}') == (
        variables["CDK_OUTDIR"], variables["CDK_CONTEXT_JSON"],
    )  # fmt: skip


def test_an_app_that_fails_is_a_failure(started, monkeypatch, invoke):
    monkeypatch.setenv("FAILS", "1")

    result = invoke("synth")

    assert 1 == result.exit_code
    assert "did not synthesise" in result.output


def test_without_the_cdk_nothing_is_started(started, monkeypatch, invoke):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "aws_cdk" else find(name)
    )

    result = invoke("synth")

    assert ([], 1) == (started, result.exit_code)
    assert "aws_cdk is not installed" in result.output
    assert "Fix: run `make setup`" in result.output
