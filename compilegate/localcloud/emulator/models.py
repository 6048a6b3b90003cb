"""The SDK's descriptions of services, each read once in the emulator's process.

ministack, the interpreter, the checks of requests and of permissions each read them for themselves,
20 to 90 ms of processor time for one, and every session of botocore once more.
"""

from __future__ import annotations

import functools
from typing import Any

import botocore.loaders
import botocore.session
from botocore.exceptions import UnknownServiceError

from compilegate.localcloud.emulator.replacements import replace

_READ_FOR_PERMISSIONS = "ministack.core.iam_actions._load_botocore_model"


def install() -> None:
    """Let all of them read through one loader; before the first session is made."""
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)

    def description(botocore_service: str) -> dict[str, Any]:
        loader = botocore.session.create_loader(None)
        try:
            read: dict[str, Any] = loader.load_service_model(botocore_service, "service-2")
        except UnknownServiceError:
            return {}
        return read

    replace(_READ_FOR_PERMISSIONS, description)
