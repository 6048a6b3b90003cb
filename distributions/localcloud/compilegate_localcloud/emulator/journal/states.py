"""The state of ministack's services as text, and back.

Each service has a pair of functions for it, which ministack calls where it is asked to keep its
state until it is stopped; being killed it would have kept nothing.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ministack import app
from ministack.core import persistence

_ATTEMPTS = 20
EXECUTIONS = "stepfunctions"


def loaded_services() -> Iterator[str]:
    """The services that have been used, by the names of their states."""
    for name, module in app._state_map.items():
        if f"ministack.services.{module}" in sys.modules:
            yield name


def state_of(service: str) -> bytes | None:
    """A service's state; None for one that has none."""
    module: Any = sys.modules.get(f"ministack.services.{app._state_map.get(service)}")
    if module is None:
        return None
    return _retried(lambda: _encoded(module.get_state()))


def restore(service: str, content: bytes) -> list[tuple[str, str, str]]:
    """Give a service its state; account, region and ARN of executions that ran."""
    module: Any = importlib.import_module(f"ministack.services.{app._state_map[service]}")
    state = json.loads(content, object_hook=persistence._json_object_hook)
    ran = []
    if service == EXECUTIONS:
        ran = [
            (scoped, record, dict(record))
            for scoped, record in state["executions"].all_items()
            if record["status"] == "RUNNING"
        ]
    module.load_persisted_state(state)
    for _, record, before in ran:  # ministack lets them fail
        record.clear()
        record.update(before)
    return [scoped for scoped, *_ in ran]


def _encoded(state: Any) -> bytes | None:
    return json.dumps(state, default=persistence._json_default).encode() if state else None


def _retried(read: Callable[[], bytes | None]) -> bytes | None:
    """What is read while another thread adds to it has to be read again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return read()
        except RuntimeError:  # changed size during iteration
            continue
    return read()
