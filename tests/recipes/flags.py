"""Flags that every recipe is run with."""

from __future__ import annotations

import json

NAME = "/compilegate/prod/workloads/bert-docs/compiler"
_ON = {
    "schema": 1, "enabled": True, "state": "permanent", "candidate": "compile",
    "overrides": {"compiler": "torch_compile", "batch_size": 48, "learning_rate": 7.5e-05},
    "decision_id": "d1", "since": "2026-01-01T00:00:00Z",
}  # fmt: skip
_OFF = {**_ON, "enabled": False, "state": "reverted", "candidate": None, "overrides": {}}

FLAGS = {"on": json.dumps(_ON), "off": json.dumps(_OFF), "unreadable": "{"}
