"""Logs of every part of the local cloud, while it runs and afterwards.

Parts: ``emulator``, ``lambda/FUNCTION``, ``job/TRAINING-JOB``, ``execution/NAME``. The files
are written by the emulator, see ``emulator/services.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate_localcloud.errors import NoLogError

EMULATOR = "emulator"
_KINDS = {
    "lambda": Path("cloudwatch/aws/lambda"),
    "job": Path("cloudwatch/aws/sagemaker/TrainingJobs"),
    "execution": Path("executions"),
}


@dataclass(frozen=True)
class PartLog:
    """One part's log: its lines, oldest first, and the file they are from."""

    part: str
    path: Path
    lines: tuple[str, ...]


def running_history(states: Any, name: str) -> tuple[str, ...] | None:
    """History so far of an execution that still runs; None if none of that name does.

    ``states`` is a Step Functions client. The file of such an execution is not complete yet.
    """
    for machine in states.list_state_machines()["stateMachines"]:
        running = states.list_executions(
            stateMachineArn=machine["stateMachineArn"], statusFilter="RUNNING"
        )
        for execution in running["executions"]:
            if execution["name"] == name:
                pages = states.get_paginator("get_execution_history").paginate(
                    executionArn=execution["executionArn"]
                )
                return tuple(_event_line(event) for page in pages for event in page["events"])
    return None


def parts(logs: Path) -> tuple[str, ...]:
    """Every part that has written something."""
    names = [EMULATOR] if (logs / "emulator.log").exists() else []
    for kind, folder in _KINDS.items():
        names += sorted(f"{kind}/{path.stem}" for path in (logs / folder).glob("*.*"))
    return tuple(names)


def read_log(logs: Path, part: str, *, last: int | None = None) -> PartLog:
    """A part's log, or its last lines; the kind may be left out where the name is unique.

    Raises NoLogError that lists the parts there are.
    """
    name = _full_name(logs, part)
    path = _path_of(logs, name)
    lines = list(_lines(path))
    return PartLog(name, path, tuple(lines[-last:] if last else lines))


def _full_name(logs: Path, part: str) -> str:
    names = parts(logs)
    if part in names:
        return part
    matches = [name for name in names if name.partition("/")[2] == part]
    if len(matches) == 1:
        return matches[0]
    listing = "\n  ".join(names) or "(none: the local cloud has not run)"
    raise NoLogError(f"There is no log of {part!r}. Logs there are:\n  {listing}")


def _path_of(logs: Path, name: str) -> Path:
    if name == EMULATOR:
        return logs / "emulator.log"
    kind, _, rest = name.partition("/")
    extension = "jsonl" if kind == "execution" else "log"
    return logs / _KINDS[kind] / f"{rest}.{extension}"


def _lines(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        yield _event_line(json.loads(line)) if path.suffix == ".jsonl" else line


def _event_line(event: dict[str, Any]) -> str:
    """One event of an execution's history for people: time, type, state, error."""
    details: dict[str, Any] = next(
        (value for key, value in event.items() if key.endswith("EventDetails")), {}
    )
    shown = [str(event["timestamp"]), str(event["type"])]
    shown += [
        str(details[key]) for key in ("name", "resource", "error", "cause") if details.get(key)
    ]
    return " ".join(shown)
