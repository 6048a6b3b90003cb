"""Unpacks what several Lambda workers run once for all of them.

All functions of the app are the same bundle. ministack unpacks it for every worker: hundreds of
files, whose bytecode each would compile again.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import types
import zipfile
from pathlib import Path
from typing import Any

from compilegate_localcloud.emulator.replacements import replace

_ZIPFILE = "ministack.core.lambda_runtime.zipfile"
_PYTHON_WORKER = "_worker.py"  # the program that ministack has written beside the code
_lock = threading.Lock()


class _Shared(zipfile.ZipFile):
    """An archive whose ``extractall`` links to the one folder with its content."""

    def extractall(self, path: Any = None, *_arguments: Any) -> None:
        """Replace the empty folder ``path`` by the link.

        For Python only: into the code of a Node function ministack links what its layers hold.
        """
        if not (Path(path).parent / _PYTHON_WORKER).exists():
            super().extractall(path)
            return
        digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
        shared = Path(tempfile.gettempdir()) / f"lambda-code-{digest}"
        with _lock:
            if not shared.exists():
                partial = shared.with_suffix(".partial")
                super().extractall(partial)
                partial.rename(shared)
        place = Path(path)
        place.rmdir()
        place.symlink_to(shared, target_is_directory=True)


def install() -> None:
    """Let workers share what they run. On AWS none can write there."""
    replace(_ZIPFILE, types.SimpleNamespace(**{**vars(zipfile), "ZipFile": _Shared}))
