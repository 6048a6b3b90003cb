"""The command as a user calls it, on an account in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from compilegate.cli.common.session import Session
from compilegate.cli.main import app
from compilegate_discover.account import Pace
from compilegate_discover.command import datetime as clock
from distributions.discover.tests.cloud import AccountInMemory
from distributions.discover.tests.jobs import NOW

Discover = Callable[..., Any]


class Frozen(clock):
    """A clock that stands."""

    @classmethod
    def now(cls, tz: Any = None) -> clock:
        return NOW.astimezone(tz)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    for name in ("COMPILEGATE_DEBUG", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Pace, "wait", lambda *_: None)
    monkeypatch.setattr("compilegate_discover.command.datetime", Frozen)

    def call(account: AccountInMemory | None, *arguments: object) -> Any:
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, words, obj=Session(providers=account))

    return call


@pytest.fixture
def discover(invoke: Callable[..., Any]) -> Discover:
    """The document of a run."""

    def call(account: AccountInMemory, *arguments: object) -> Any:
        result = invoke(account, "discover", "--json", *arguments)
        assert 0 == result.exit_code, result.output
        return json.loads(result.stdout)

    return call
