"""A bundle's ``requirements.txt``, installed before the arms run, as a job's container does it."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

from compilegate.domain.errors import InvalidInputError
from compilegate.localcloud.interpreter import own_interpreter

REQUIREMENTS = "requirements.txt"


def installed(bundle: bytes, python: Path, folder: Path, limit_seconds: float) -> Path:
    """A Python in ``folder`` with what the bundle lists over what ``python`` has.

    The environment of ``python`` stays as it is. Raises InvalidInputError with pip's own words.
    """
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
