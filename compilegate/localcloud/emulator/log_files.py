"""Every part's log as a file, written as it happens, kept after the emulator has ended.

``logs/emulator.log`` is the emulator's own output; ``logs/cloudwatch/<group>/<stream>.log``
mirrors CloudWatch Logs, where Lambda functions and training jobs write;
``logs/executions/<name>.jsonl``, which engine/executions.py writes, is the history of an execution
that has ended.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

from ministack.services import cloudwatch_logs

from compilegate.localcloud.emulator.replacements import replace, upstream

_APPEND = "ministack.services.cloudwatch_logs._append_log_events"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def install(folder: Path) -> None:
    """Mirror CloudWatch Logs into the folder from now on."""
    original = upstream(_APPEND)

    def append(stream: dict[str, Any], events: list[dict[str, Any]]) -> None:
        original(stream, events)
        path = _path_of(stream)
        if path is not None and events:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("a", encoding="utf-8") as file:
                file.writelines(_line(event) for event in events)

    replace(_APPEND, append)


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
