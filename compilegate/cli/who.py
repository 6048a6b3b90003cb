"""Who runs the command, for what is recorded under a person's name."""

from __future__ import annotations

import getpass
import os
from typing import Any


def os_user() -> str:
    """The user of this machine; their number where they have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def aws_caller(sts: Any) -> str:
    """The ARN that AWS knows the caller by (sts:GetCallerIdentity, which needs no permission)."""
    return str(sts.get_caller_identity()["Arn"])
