"""A cloud with a promoted flag, and a person's word on it, for the tests of ``flag``."""

from __future__ import annotations

from typing import Any

from compilegate.cli.common.cloud import Cloud
from tests.cli.conftest import Invoke

FLAG = "/compilegate/dev/workloads/bert-docs/compiler"
WHY = "loss spikes since Monday"


def entries(found: Cloud) -> list[dict[str, Any]]:
    return [dict(entry) for entry in found.services.ledger.entries("bert-docs", "flag#")]


def revert(invoke: Invoke, *options: str) -> Any:
    return invoke("flag", "revert", "bert-docs", "--reason", WHY, *options)
