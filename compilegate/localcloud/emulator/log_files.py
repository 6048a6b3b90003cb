"""Every part's log as a file, written as it happens, kept after the emulator has ended.

``logs/emulator.log`` is the emulator's own output; ``logs/cloudwatch/<group>/<stream>.log``
mirrors CloudWatch Logs, where Lambda functions and training jobs write;
``logs/executions/<name>.jsonl`` is the history of each execution, complete once it has ended.
"""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

from ministack.services import cloudwatch_logs, stepfunctions

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def install(folder: Path) -> None:
    """Begin to mirror."""
    _mirror_cloudwatch(folder / "cloudwatch")
    _mirror_histories(folder / "executions")


def _mirror_cloudwatch(folder: Path) -> None:
    original = cloudwatch_logs._append_log_events

    def append(stream: dict[str, Any], events: list[dict[str, Any]]) -> None:
        original(stream, events)
        path = _path_of(stream)
        if path is not None and events:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a", encoding="utf-8") as file:
                file.writelines(_line(event) for event in events)

    cloudwatch_logs._append_log_events = append


def _path_of(stream: dict[str, Any]) -> Path | None:
    """Where a stream's lines go: one file per job, one per Lambda function.

    A record knows neither its group nor its name, so it is looked for among the groups.
    """
    for group, record in list(cloudwatch_logs._log_groups.items()):
        for name, candidate in list(record["streams"].items()):
            if candidate is stream:
                parts = [_UNSAFE.sub("-", part) for part in group.strip("/").split("/")]
                if parts[:2] == ["aws", "sagemaker"]:
                    parts.append(_UNSAFE.sub("-", name.split("/")[0]))
                return Path(*parts[:-1], f"{parts[-1]}.log")
    return None


def _line(event: dict[str, Any]) -> str:
    moment = datetime.datetime.fromtimestamp(event["timestamp"] / 1000, tz=datetime.UTC)
    return f"{moment.isoformat(timespec='milliseconds')} {event['message'].rstrip()}\n"


def _mirror_histories(folder: Path) -> None:
    original = stepfunctions._emit_execution_status_event

    def emit(execution: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(event, default=str) for event in execution["events"]]
        name = _UNSAFE.sub("-", execution["name"])
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        original(execution)

    stepfunctions._emit_execution_status_event = emit
