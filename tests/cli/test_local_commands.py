"""``local``: what the switch of the embedded cloud says; the cloud itself has its own tests."""

import json
import time
from dataclasses import replace

import pytest

from compilegate_localcloud import api
from compilegate_localcloud.connection import RunState
from compilegate_localcloud.deploy import DeployedStack
from compilegate_localcloud.logs import PartLog

OUTPUTS = {"DataBucket": "data", "LedgerTable": "ledger"}


@pytest.fixture
def state():
    return RunState("r", 77, 4566, "us-east-1", False, False, False, time.time() - 120)


@pytest.fixture
def running(state, monkeypatch, tmp_path):
    stack = DeployedStack("compilegate-local", "CREATE_COMPLETE", OUTPUTS, 1.5)
    up = api.UpResult(state, (stack,), True, 0.4, 8.7, 1.5)
    monkeypatch.setattr(api, "up", lambda: up)
    monkeypatch.setattr(api, "down", lambda: True)
    document = api.StatusResult(state, OUTPUTS, tmp_path, ("emulator", "job/cg-lm-1-s0-r0"))
    monkeypatch.setattr(api, "status", lambda: document)


def test_up_says_where_it_runs_and_what_comes_next(running, invoke):
    shown = invoke("local", "up").stdout
    document = json.loads(invoke("local", "up", "--json").stdout)

    assert "The local cloud started at http://127.0.0.1:4566 (process 77)." in shown
    assert "Deployed compilegate-local: start 0.4 s beside synthesis 8.7 s, deploy 1.5 s." in shown
    assert "compilegate local down" in shown
    assert {"start": 0.4, "synth": 8.7, "deploy": 1.5} == document["seconds"]
    assert OUTPUTS == document["outputs"]


@pytest.mark.parametrize(("started_now", "resumed"), [(True, True), (False, True)])
def test_up_names_the_end_that_it_goes_on_from(started_now, resumed, state, invoke, monkeypatch):
    up = api.UpResult(replace(state, resumed=resumed), (), started_now, 0.4, 8.7, 1.5)
    monkeypatch.setattr(api, "up", lambda: up)

    shown = invoke("local", "up").stdout

    assert (started_now and resumed) is ("compilegate status --local" in shown)
    assert started_now is not ("was running already" in shown)


def test_status_and_the_list_of_logs(running, invoke):
    shown = invoke("local", "status").stdout
    document = json.loads(invoke("local", "status", "--json").stdout)

    assert "runs at http://127.0.0.1:4566 (process 77, for 2 min)." in shown
    assert "  DataBucket             data\n" in shown
    assert (True, ["emulator", "job/cg-lm-1-s0-r0"]) == (document["running"], document["logs"])
    assert "emulator\njob/cg-lm-1-s0-r0\n" == invoke("local", "logs").stdout


def test_env_is_for_a_shell_and_for_programs(state, invoke, monkeypatch):
    monkeypatch.setattr(api, "environment", state.environment)
    lines = invoke("local", "env").stdout.splitlines()

    assert "unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_SESSION_TOKEN" in lines
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:4566" in lines
    assert f"export AWS_SECRET_ACCESS_KEY={state.secret}" in lines
    assert state.environment() == json.loads(invoke("local", "env", "--json").stdout)


def test_down_says_whether_anything_ran(running, invoke, monkeypatch):
    assert "The local cloud has stopped.\n" == invoke("local", "down").stdout

    monkeypatch.setattr(api, "down", lambda: False)
    assert "No local cloud was running.\n" == invoke("local", "down").stdout
    assert {"stopped": False} == json.loads(invoke("local", "down", "--json").stdout)


def test_a_log_is_shown_whole_or_its_end(invoke, monkeypatch, tmp_path):
    log = PartLog("emulator", tmp_path / "emulator.log", ("one [red]", "two", "three"))
    monkeypatch.setattr(api, "logs", lambda part: log)

    assert "one [red]\ntwo\nthree\n" == invoke("local", "logs", "emulator").stdout
    assert "two\nthree\n" == invoke("local", "logs", "emulator", "--last", 2).stdout
    document = json.loads(invoke("local", "logs", "emulator", "--json").stdout)
    assert ["one [red]", "two", "three"] == document["lines"]


def test_a_log_that_grows_is_followed_until_ctrl_c(invoke, monkeypatch, tmp_path):
    lines = ["one"]

    def grow(seconds):
        lines.append("more")
        if len(lines) > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(api, "logs", lambda part: PartLog(part, tmp_path, tuple(lines)))
    monkeypatch.setattr("compilegate_local.local.time.sleep", grow)

    result = invoke("local", "logs", "emulator", "--follow")

    assert (130, "one\nmore\nmore\n") == (result.exit_code, result.stdout)
