"""Makes a Lambda worker see what a function sees on AWS, and end with the emulator.

Python imports this file when a worker starts, or the process that workers are forked from: the
emulator puts its folder first on PYTHONPATH. Besides the standard library and the function's own
bundle it leaves one thing importable: the SDK that the Lambda runtime brings. Everything else that
the emulator's environment holds is hidden, so that a bundle that forgot a dependency fails here
too.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import site
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import Any

# Contents of the public.ecr.aws/lambda/python:3.12 runtime beyond the standard library.
RUNTIME_PACKAGES = frozenset(
    {"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
)
_PARENT_CHECK_SECONDS = 0.5


class _OnlyRuntimePackages(importlib.abc.MetaPathFinder):
    """Finds, in the emulator's environment, the runtime's own packages and nothing else."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders

    def find_spec(
        self, fullname: str, path: Any = None, _target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of a runtime package, else None: other finders have looked already."""
        if fullname.partition(".")[0] not in RUNTIME_PACKAGES:
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, path or self._folders)


def _hide_emulator_packages() -> None:
    folders = {*site.getsitepackages(), sysconfig.get_path("purelib"), str(Path(__file__).parent)}
    hidden = [folder for folder in sys.path if folder in folders]
    sys.path[:] = [folder for folder in sys.path if folder not in folders]
    sys.meta_path.append(_OnlyRuntimePackages(hidden))


def end_with_parent() -> None:
    """End this process, soon, once the one is gone that started it."""
    threading.Thread(target=_wait_for_end, args=(os.getppid(),), daemon=True).start()


def _wait_for_end(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


os.environ.pop("PYTHONPATH", None)
_hide_emulator_packages()
if os.environ.pop("COMPILEGATE_LAMBDA_TEMPLATE", None) is None:  # see template.py, which forks
    end_with_parent()
