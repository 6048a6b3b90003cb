"""The code under test: the one file to change when a name of it moves."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner
from typer.main import get_command

import app as cdk_app
from compilegate.adapters import wiring
from compilegate.cli.common.session import Session
from compilegate.cli.main import app
from lambdas import handlers
from tests.conformance.matrix import cases
from tests.conformance.ours import built
from tests.fake_clouds import FakeProviders
from tests.fake_clouds import cloud as memory_cloud
from tests.fakes import MemoryTopic, NoLogs
from tests.stacks.template import TEMPLATE, shipped_assembly

# Built once: it takes longer than most commands.
COMMAND_LINE = get_command(app)
# What of the shell's environment commands read.
VARIABLES = ("COMPILEGATE_DEBUG", "COMPILEGATE_STAGE", "AWS_REGION", "AWS_DEFAULT_REGION")
FIXED = {"COLUMNS": "80", "LOGNAME": "ann"}


def command(*arguments: str, text: str | None = None, cloud: Any = None) -> dict[str, Any]:
    """Exit code and JSON of a command; ``text`` is its standard input, ``cloud`` its AWS."""
    providers = FakeProviders(aws_cloud=cloud, local_cloud=cloud)
    with _plain_environment():
        result = CliRunner().invoke(
            COMMAND_LINE, list(arguments), input=text, obj=Session(providers=providers)
        )
    return {"exit": result.exit_code, "json": parsed(result.stdout)}


def parsed(output: str) -> Any:
    """The JSON document or documents that a command wrote; None where it wrote none."""
    if not output.strip():
        return None
    try:
        return json.loads(output)
    except ValueError:
        return [json.loads(line) for line in output.splitlines()]


def cloud() -> Any:
    """A cloud in memory, with the stage ``prod``."""
    return memory_cloud("prod")


def topic() -> Any:
    """A topic that keeps its messages."""
    return MemoryTopic()


def step(name: str, event: dict[str, Any], cloud: Any, topic: Any) -> Any:
    """The answer of a step's function to an event, both as JSON carries them."""
    with (
        patch.object(wiring, "services", lambda *_: cloud.services),
        patch.object(wiring, "topic", lambda *_: topic),
        patch.object(wiring, "training_logs", lambda *_: NoLogs()),
    ):
        answer = getattr(handlers, name)(json.loads(json.dumps(event, default=str)), None)
    return json.loads(json.dumps(answer))


def stored_in(cloud: Any, topic: Any, pages: tuple[str, ...]) -> dict[str, Any]:
    """All that a cloud in memory holds, of ``pages`` for people only that they are there."""
    services = cloud.services
    return {
        "objects": {
            key: _content(key, body, pages) for key, body in sorted(services.store.objects.items())
        },
        "ledger": {
            f"{name} {key}": entry for (name, key), entry in services.ledger.raw.items.items()
        },
        "flags": {name: parsed(text) for name, text in services.flags.values.items()},
        "locks": services.locks.held,
        "jobs": {
            name: {"status": job["TrainingJobStatus"], "tags": job.get("Tags", [])}
            for name, job in services.jobs.descriptions.items()
        },
        "answers": services.tokens.answers,
        "schedules": cloud.production.schedules.expressions,
        "told": [vars(message) for message in topic.sent],
    }


def _content(key: str, body: bytes, pages: tuple[str, ...]) -> Any:
    if any(part in key for part in pages) or not key.endswith(".json"):
        return "(not compared)"
    return json.loads(body)


def conformance_requests() -> dict[str, Any]:
    """The CreateTrainingJob request of each case of the conformance matrix, by id."""
    return {case.id: built(case) for case in cases()}


def synthesise(**settings: Any) -> dict[str, Any]:
    """The template of a deployment with these settings over those of cdk.json."""
    with tempfile.TemporaryDirectory() as folder:
        assembly = Path(folder) if settings else shipped_assembly()
        if settings:
            cdk_app.synthesise({**cdk_app.default_context(), **settings}, assembly)
        document: dict[str, Any] = json.loads((assembly / TEMPLATE).read_text())
    return document


@contextmanager
def _plain_environment() -> Iterator[None]:
    variables = {name: text for name, text in os.environ.items() if name not in VARIABLES}
    with patch.dict(os.environ, {**variables, **FIXED}, clear=True):
        yield


@contextmanager
def working_folder(folder: Path) -> Iterator[None]:
    """Commands see this folder as the shell's."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
