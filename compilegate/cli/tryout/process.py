"""One arm's job as a process of this machine, started as the container toolkit would start it.

Arguments and variables are those of the arm's CreateTrainingJob request; ``/opt/ml`` is a folder of
its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilegate.adapters.workload_files import PYTHON
from compilegate.domain.argument_text import argument
from compilegate.domain.errors import InvalidInputError
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.request.launcher import PLATFORM_PREFIX
from compilegate.place import INSTALLED, PROJECT

STEPS = 2
ROOT = "/opt/ml"
# Read by compilegate_runtime/environment.py.
VARIABLE = "COMPILEGATE_TRY_STEPS"
# What a user's own environment needs to find libraries, GPUs and caches of models.
_INHERITED = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HF_HOME")
POLL_SECONDS = 0.2
# A Python on a slow network disk starts in less.
ASK_SECONDS = 30.0
# Of a bundle; installed before the arms run, as a job's container does it.
REQUIREMENTS = "requirements.txt"


@dataclass(frozen=True)
class Ended:
    """How a process ended: ``code`` is None where its time was up; ``seconds`` of wall clock."""

    code: int | None
    seconds: float
    folder: Path
    log: Path


def default_python() -> Path:
    """The training environment of the checkout, in an installed package the own one."""
    return Path(sys.executable) if INSTALLED else PROJECT / PYTHON


def lacks(python: Path, package: str) -> bool:
    """Whether this Python says that it cannot find a package; a wrapper may answer nothing."""
    code = f"import importlib.util; print(importlib.util.find_spec({package!r}))"
    try:
        asked = subprocess.run(  # noqa: S603 - the user's own Python, as an argument list
            [str(python), "-c", code], env=dict(_inherited()), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=ASK_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.stdout.strip() == "None"


def start_words(request: Mapping[str, Any], root: Path) -> list[str]:
    """The program and its arguments, as the toolkit makes them of a request."""
    values = {name: json.loads(text) for name, text in request["HyperParameters"].items()}
    program = str(values["sagemaker_program"])
    own = {name: value for name, value in values.items() if not name.startswith(PLATFORM_PREFIX)}
    if program != LAUNCHER:  # it calls the recorder: its own number of steps, or a segment
        own["steps" if "steps" in own else "max_steps"] = STEPS
    words = [program]
    for name, value in sorted(own.items()):
        words += [f"--{name}" if len(name) > 1 else f"-{name}", mapped(argument(value), root)]
    return words


def mapped(value: str, root: Path) -> str:
    """A path under ``/opt/ml`` as it is called here; other values unchanged."""
    inside = value == ROOT or value.startswith(f"{ROOT}/")
    return str(root) + value.removeprefix(ROOT) if inside else value


def run(
    request: Mapping[str, Any],
    *,
    bundle: bytes,
    inputs: Mapping[str, Path],
    folder: Path,
    python: Path,
    limit_seconds: float,
    on_wait: Callable[[Path], None],
) -> Ended:
    """Run one arm in ``folder`` to its end or the limit; ``on_wait`` gets its log now and then."""
    root, code, log = folder / "ml", folder / "code", folder / "output.log"
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        archive.extractall(code, filter="data")
    for place in ("output/data", "model", "checkpoints", "input/data"):
        (root / place).mkdir(parents=True)
    for channel, source in inputs.items():
        target = root / "input" / "data" / channel
        if source.is_dir():
            target.symlink_to(source.resolve())
        else:
            target.mkdir()
            (target / source.name).symlink_to(source.resolve())
    command = [str(python), *start_words(request, root)]
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the user's own script, as an argument list
            command, cwd=code, env=dict(_environment(request, root, inputs)),
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            code_ = _wait(process, began + limit_seconds, lambda: on_wait(log))
        finally:
            _end(process)
    return Ended(code_, time.monotonic() - began, root, log)


def _wait(
    process: subprocess.Popen[bytes], until: float, on_wait: Callable[[], None]
) -> int | None:
    while time.monotonic() < until:
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            on_wait()
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it has started, such as workers of a data loader."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _inherited() -> Iterator[tuple[str, str]]:
    return ((name, os.environ[name]) for name in _INHERITED if name in os.environ)


def _environment(
    request: Mapping[str, Any], root: Path, inputs: Mapping[str, Path]
) -> Iterator[tuple[str, str]]:
    yield from _inherited()
    yield "PYTHONUNBUFFERED", "1"
    yield "SM_OUTPUT_DIR", str(root / "output")
    yield "SM_OUTPUT_DATA_DIR", str(root / "output" / "data")
    yield "SM_MODEL_DIR", str(root / "model")
    yield "TRAINING_JOB_NAME", str(request["TrainingJobName"])
    for channel in inputs:
        name = "".join(mark if mark.isalnum() else "_" for mark in channel)
        yield f"SM_CHANNEL_{name.upper()}", str(root / "input" / "data" / channel)
    for name, value in request["Environment"].items():
        yield name, mapped(value, root)
    yield VARIABLE, str(STEPS)


def installed(bundle: bytes, python: Path, folder: Path, limit_seconds: float) -> Path:
    """A Python in ``folder`` with what the bundle lists over what ``python`` has.

    The environment of ``python`` stays as it is. Raises InvalidInputError with pip's own words.
    """
    from compilegate_localcloud.interpreter import own_interpreter  # noqa: PLC0415 - compilegate[local]

    code = folder / "code"
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        archive.extractall(code, filter="data")
    own = own_interpreter(python, folder / "environment").python
    command = [str(own), "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own packages, as an argument list
            command, cwd=code, env=dict(os.environ), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=limit_seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _not_installed("its time was up; --minutes gives more") from None
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        raise _not_installed(" ".join(errors).replace("ERROR: ", ""))
    return own


def _not_installed(why: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot be installed: {why or 'pip gave no reason'}", file=REQUIREMENTS,
        fix="correct it, or name a Python that has what it lists with --python",
    )  # fmt: skip
