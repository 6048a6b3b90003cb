"""Plans and the CreateTrainingJob requests of them, and those of the conformance matrix."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.frozen import workloads
from tests.frozen.eligibility import in_project
from tests.frozen.entries import command, conformance_requests
from tests.frozen.recording import Case

VARIANTS = 400
WHOLE = 20


def cases() -> list[Case]:
    """``plan --json`` of files, with its requests, and every request of the matrix."""
    listed = [Case(f"plan-{file.stem}", partial(_file, file)) for file in workloads.SHIPPED]
    listed += [
        Case(f"plan-variant-{number:04}", partial(_variant, number), whole=number % WHOLE == 0)
        for number in range(VARIANTS)
    ]
    ids = sorted(_matrix())
    return listed + [
        Case(f"conformance {name}", partial(_request, name), whole=index % WHOLE == 0)
        for index, name in enumerate(ids)
    ]


@cache
def _matrix() -> dict[str, Any]:
    return conformance_requests()


def _request(name: str) -> Any:
    return _matrix()[name]


def _file(file: Path) -> Any:
    return planned(file.read_bytes())


def _variant(number: int) -> Any:
    return planned(workloads.text_of(workloads.variant(number)).encode())


def planned(text: bytes) -> Any:
    """Exit code and document of ``plan`` for a workload file of that text."""
    return in_project(text, lambda: command("plan", "w.yaml", "--region", "us-east-1", "--json"))
