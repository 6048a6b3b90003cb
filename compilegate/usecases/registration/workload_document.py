"""The one door for workload documents: grammar first, then what the service would refuse."""

from __future__ import annotations

from functools import cache
from typing import Any

from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.limits import check_limits
from compilegate.domain.workload.model import Workload


def read_document(document: object) -> Workload:
    """The workload of a document. Raises InvalidInputError naming field, value and fix."""
    workload = parse_workload(document)
    check_limits(workload, _shapes())
    return workload


@cache
def _shapes() -> dict[str, Any]:
    from compilegate.facts import read  # noqa: PLC0415 - a third of what opening a trial imports

    shapes: dict[str, Any] = read("create_training_job")["shapes"]
    return shapes
