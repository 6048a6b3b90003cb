"""Where the parts lie that are no modules of ours: in a checkout, or inside the installed package.

A wheel carries them in ``compilegate/shipped`` (pyproject.toml), so that it installs no package of
a name as general as ``training``.
"""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_SHIPPED = PACKAGE / "shipped"
INSTALLED = _SHIPPED.is_dir()
# app.py, cdk.json, stacks, lambdas, training, workloads; only a checkout's may be written to.
PROJECT = _SHIPPED if INSTALLED else PACKAGE.parent


def work_folder() -> Path:
    """Where commands keep what can be made again: in the checkout, else in the user's cache.

    Named as in the XDG Base Directory Specification 0.8.
    """
    if not INSTALLED:
        return PROJECT / ".compilegate"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "compilegate"
