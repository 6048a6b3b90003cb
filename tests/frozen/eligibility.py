"""What ``compilegate check`` answers to workload files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.frozen import workloads
from tests.frozen.entries import command, working_folder
from tests.frozen.recording import Case

VARIANTS = 1000
WHOLE = 10
REGIONS = ("eu-west-1", "ap-south-1", "us-gov-west-1")


def cases() -> list[Case]:
    """Every file that is shipped, wrong, or generated; some of them in other regions."""
    listed = [Case(f"workloads-{file.stem}", partial(_file, file)) for file in workloads.SHIPPED]
    listed += [Case(f"corpus-{file.stem}", partial(_file, file)) for file in workloads.CORPUS]
    listed += [
        Case(f"{region}-{file.stem}", partial(_file, file, region), whole=False)
        for region in REGIONS
        for file in workloads.SHIPPED
    ]
    return listed + [
        Case(f"variant-{number:04}", partial(_variant, number), whole=number % WHOLE == 0)
        for number in range(VARIANTS)
    ]


def _file(file: Path, region: str = "us-east-1") -> Any:
    return checked(file.read_bytes(), region)


def _variant(number: int) -> Any:
    return checked(workloads.text_of(workloads.variant(number)).encode())


def checked(text: bytes, region: str = "us-east-1") -> Any:
    """Exit code and document of ``check`` for a workload file of that text."""
    return in_project(text, lambda: command("check", "w.yaml", "--region", region, "--json"))


def in_project(text: bytes, run: Callable[[], Any]) -> Any:
    """What ``run`` answers in the folder of a project whose workload file is ``w.yaml``."""
    with tempfile.TemporaryDirectory() as folder, working_folder(Path(folder)):
        workloads.write_project(Path(folder))
        Path("w.yaml").write_bytes(text)
        return run()
