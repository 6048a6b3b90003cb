"""The parts of the harness by name; each makes its cases anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.frozen import commands, evidence, steps, template, workloads
from tests.frozen.entries import command, conformance_requests
from tests.frozen.recording import Case
from tests.frozen.workloads import CORPUS, SHIPPED, read_in_project

REGIONS = ("eu-west-1", "ap-south-1", "us-gov-west-1")
# Every so many-th answer of a large part is stored whole.
WHOLE = {"judge": 20, "eligibility": 10, "requests": 20}
DOCUMENTS = {
    "trial": (evidence.trial, 2000),
    "examined": (evidence.examined, 300),
    "probation": (evidence.probation, 1000),
    "malformed": (evidence.malformed, 400),
}


def judge() -> list[Case]:
    """``judge`` on generated evidence."""
    return [
        Case(f"{kind}-{n:04}", partial(_decision, make, n), whole=n % WHOLE["judge"] == 0)
        for kind, (make, count) in DOCUMENTS.items()
        for n in range(count)
    ]


def eligibility() -> list[Case]:
    """``check`` on every file that is shipped, wrong or generated, some of it for other regions."""
    files = {"workloads": SHIPPED, "corpus": CORPUS}
    listed = [
        Case(f"{kind}-{file.stem}", partial(_on_file, file, "check"))
        for kind in files
        for file in files[kind]
    ]
    listed += [
        Case(f"{region}-{file.stem}", partial(_on_file, file, "check", region), whole=False)
        for region in REGIONS
        for file in SHIPPED
    ]
    return listed + [
        Case(f"variant-{n:04}", partial(_on_variant, n, "check"),
             whole=n % WHOLE["eligibility"] == 0)
        for n in range(1000)
    ]  # fmt: skip


def requests() -> list[Case]:
    """``plan`` of files, with its requests, and every request of the conformance matrix."""
    whole = WHOLE["requests"]
    listed = [Case(f"plan-{file.stem}", partial(_on_file, file, "plan")) for file in SHIPPED]
    listed += [
        Case(f"plan-variant-{n:04}", partial(_on_variant, n, "plan"), whole=n % whole == 0)
        for n in range(400)
    ]
    return listed + [
        Case(f"conformance {name}", partial(_request, name), whole=index % whole == 0)
        for index, name in enumerate(sorted(_matrix()))
    ]


def _decision(make: Callable[[int], Any], number: int) -> Any:
    text = json.dumps(make(number))
    return command("judge", "-", "--json", "--stage", "prod", text=text)


def _on_file(file: Path, name: str, region: str = "us-east-1") -> Any:
    return _answer(file.read_bytes(), name, region)


def _on_variant(number: int, name: str) -> Any:
    text = workloads.text_of(workloads.variant(number))
    return _answer(text.encode(), name, "us-east-1")


def _answer(text: bytes, name: str, region: str) -> Any:
    return read_in_project(text, lambda: command(name, "w.yaml", "--region", region, "--json"))


@cache
def _matrix() -> dict[str, Any]:
    return conformance_requests()


def _request(name: str) -> Any:
    return _matrix()[name]


PARTS: dict[str, Callable[[], list[Case]]] = {
    "judge": judge,
    "eligibility": eligibility,
    "requests": requests,
    "steps": steps.cases,
    "commands": commands.cases,
    "template": template.cases,
}
