"""The emulator's settings, from its command line, and the app's fact files."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from compilegate.place import PACKAGE
from compilegate_localcloud.names import Home

RUN_VARIABLE = "COMPILEGATE_LOCAL_RUN"


@dataclass(frozen=True)
class Settings(Home):
    """One run of the emulator."""

    run_id: str
    region: str
    job_python: Path
    toolkit: Path | None
    attached: bool
    enforce_iam: bool
    inject_failures: bool
    hold_rates: bool
    slots: int
    stop_grace_seconds: float
    checkpoint_seconds: float
    quotas: dict[str, int]

    @property
    def temporary(self) -> Path:
        """The run's private TMPDIR; removed at the end."""
        return self.work / "tmp"

    @property
    def jobs(self) -> Path:
        """One folder per training job, its ``/opt/ml``; removed at the end."""
        return self.work / "jobs"


def usable_cores() -> int:
    """Cores this process may use; fewer than the machine has under an affinity mask."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parse_arguments(arguments: Sequence[str]) -> Settings:
    """The settings that ``compilegate_localcloud.lifecycle`` passes on the command line."""
    parser = argparse.ArgumentParser(prog="python -m compilegate_localcloud.emulator")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--job-python", type=Path, required=True)
    # A folder with another release of SageMaker's container toolkit than job_python's own.
    parser.add_argument("--toolkit", type=Path)
    parser.add_argument("--attached", action="store_true")
    parser.add_argument("--enforce-iam", action="store_true")
    parser.add_argument("--inject-failures", action="store_true")
    parser.add_argument("--hold-rates", action="store_true")
    parser.add_argument("--slots", type=int, default=usable_cores())
    # 120 s on AWS, in which the script trains on because it gets no signal.
    parser.add_argument("--stop-grace-seconds", type=float, default=1.0)
    parser.add_argument("--checkpoint-seconds", type=float, default=30.0)
    # Instance type → instances that training jobs may use at once; others have no limit.
    parser.add_argument("--quotas", type=json.loads, default={})
    return Settings(**vars(parser.parse_args(arguments)))


def give_up(what: str, error: OSError) -> NoReturn:
    """End the process with the error's number, which is told even where no log can be written."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"The local cloud cannot {what}: {error}\n")
        sys.stderr.flush()
    os._exit(error.errno or 1)


FACTS = PACKAGE / "facts"


@cache
def read_facts(name: str) -> dict[str, Any]:
    """One fact file as it stands."""
    document: dict[str, Any] = json.loads((FACTS / f"{name}.json").read_text(encoding="utf-8"))
    return document
