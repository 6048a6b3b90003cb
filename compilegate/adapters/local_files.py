"""Files on this machine that are whole or as they were before, also where the disk is full."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.problem import ProblemWithFix


def write_whole(path: Path, body: bytes) -> None:
    """Write a file; raises EnvironmentNotReadyError where that fails, the old one then stays."""
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            path.write_bytes(body)
        else:
            _replace(path.resolve(), body)  # what a link names, not the link
    except BrokenPipeError:
        raise
    except OSError as error:
        raise EnvironmentNotReadyError(unwritten(str(path), error)) from error


def unwritten(what: str, error: OSError) -> ProblemWithFix:
    """That something could not be written, and what helps."""
    return ProblemWithFix(
        f"{what} could not be written: {error.strerror or error}",
        fix="free space on its disk or make its folder writable, then rerun the command",
    )


def _replace(place: Path, body: bytes) -> None:
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(body)
        fresh.replace(place)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
