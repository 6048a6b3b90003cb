"""The command as a user calls it, with providers to clouds in memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.session import Session
from compilegate.cli.main import app
from tests.cli.project import write_project
from tests.cli.trial_script import decided, executions
from tests.domain.evidence_builder import GOOD
from tests.fake_clouds import FakeProviders, cloud

Invoke = Callable[..., Result]


@pytest.fixture
def providers() -> FakeProviders:
    return FakeProviders()


@pytest.fixture
def invoke(providers: FakeProviders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Invoke:
    for name in ("COMPILEGATE_DEBUG", "COMPILEGATE_STAGE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, stdin: str | None = None) -> Result:
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, words, input=stdin, obj=Session(providers=providers))

    return call


@pytest.fixture
def shown(invoke: Invoke) -> Callable[..., str]:
    """What a command shows, in one line."""
    return lambda *words: " ".join(invoke(*words).stdout.split())


@pytest.fixture
def asked(invoke: Invoke) -> Callable[..., Any]:
    """The document that a program gets."""
    return lambda *words: json.loads(invoke(*words, "--json").stdout)


@pytest.fixture
def aws(providers: FakeProviders) -> Cloud:
    """An empty deployed stage."""
    providers.aws_cloud = cloud()
    return providers.aws_cloud


@pytest.fixture
def registered(aws: Cloud, invoke: Invoke, tmp_path: Path) -> Cloud:
    """A stage in which bert-docs is registered."""
    assert 0 == invoke("register", write_project(tmp_path / "team")).exit_code
    return aws


@pytest.fixture
def promoted(tmp_path: Path, invoke: Invoke, aws: Cloud) -> Cloud:
    """A stage after one promoted trial of bert-docs, whose candidate is ``compile``."""
    executions(aws).on_start = partial(decided, aws, metrics=GOOD)
    assert 0 == invoke("run", write_project(tmp_path)).exit_code
    return aws


@pytest.fixture
def python() -> str:
    return sys.executable
