"""Who runs the command, as the ledger names people."""

from __future__ import annotations

import getpass

HUMAN = "human:"
UNKNOWN = "unknown"


def me() -> str:
    """``human:NAME`` with the name that this machine knows the user by."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        name = UNKNOWN
    return f"{HUMAN}{name}"
