"""Runs the page's block for the SageMaker Python SDK v3 with the SDK itself.

Runs in the SDK's own environment: ``.venv-sdk3/bin/python -m tests.recipes.on_sdk_v3 FILE`` writes,
for every flag, the request that would leave this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from tests.recipes import page
from tests.recipes.account import Account, answers, opened


def model_trainer(_: Account) -> None:
    """The trainer of the page starts its job."""
    page.run(*page.MODEL_TRAINER)


def main(path: Path) -> None:
    """Write the requests by flag; the source folder of the page is beside them."""
    account = opened()
    source = path.parent / "src"
    source.mkdir()
    (source / "launch.py").write_text("")
    os.chdir(path.parent)
    with contextlib.redirect_stdout(sys.stderr):
        sent = answers(model_trainer, account)
    path.write_text(json.dumps(sent))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
