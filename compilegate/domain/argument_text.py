"""Text that reaches a training script unchanged, however its container starts it.

SageMaker's container toolkit passes hyperparameters to the script as ``--name value``. Releases
4.0.0 to 5.1.2 join the command with spaces and run it in a shell without quoting; the releases
before and after start an argument list (sagemaker-training, ``process.py``). A shell leaves a
word alone only if none of its characters means anything to it, so that any other text has to be
encoded, which only a script that decodes it can read: the launcher and the speed gate do
(training/compilegate_runtime/hyperparameters.py).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

PREFIX = "base64:"
# Python's own list of characters that no shell treats specially (shlex.quote), ASCII only.
_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_@%+:,./-]*")
# What releases 5.1.2 and later accept (``validate_entry_point``); ``.`` and ``..`` aside.
_ENTRY_POINT = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*")
_NOT_A_SEGMENT = (".", "..")


def survives(value: object) -> bool:
    """Whether a hyperparameter's value reaches the script as it is under every toolkit."""
    return bool(_WORD.fullmatch(argument(value)))


def name_survives(name: str) -> bool:
    """Whether ``--name`` reaches the script as it is under every toolkit."""
    return bool(_NAME.fullmatch(name))


def entry_point_survives(path: str) -> bool:
    """Whether every toolkit starts this file of the source folder."""
    segments = path.split("/")
    return bool(_ENTRY_POINT.fullmatch(path)) and not set(segments) & set(_NOT_A_SEGMENT)


def argument(value: object) -> str:
    """The word that the toolkit makes of a decoded hyperparameter (``mapping.to_cmd_args``)."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in sorted(value.items()))
    return "" if value is None else str(value)


def encoded(text: str) -> str:
    """The text in characters that every shell leaves alone."""
    return PREFIX + base64.urlsafe_b64encode(text.encode()).decode()


def encoded_document(document: object) -> str:
    """A JSON document, encoded."""
    return encoded(json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def decoded_document(text: str) -> Any:
    """The document again; JSON as it stands is what requests held before there was an encoding."""
    if text.startswith(PREFIX):
        text = base64.urlsafe_b64decode(text.removeprefix(PREFIX)).decode()
    return json.loads(text)


def json_object(value: object) -> dict[str, Any] | None:
    """The mapping that a value holds as JSON text; None for any other value."""
    try:
        document = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def for_launcher(value: object, *, shell: bool = True) -> object:
    """The value as the launcher reads it: encoded only where it would not survive.

    Without a ``shell`` between, only what the launcher itself would misread is encoded: it takes
    a word with leading dashes for the name of the next hyperparameter.
    """
    if not isinstance(value, str):
        return value
    misread = value.startswith(("--", PREFIX))
    return encoded(value) if misread or (shell and not survives(value)) else value
