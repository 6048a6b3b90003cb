"""``compilegate synth``: the CloudFormation template, for the cdk command."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from compilegate.cli.common.output import emit_json
from compilegate.cli.common.project import own_context
from compilegate.cli.common.session import JsonOption
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.place import INSTALLED, PROJECT

OUTPUT = Path("cdk.out")
# What app.py and stacks import besides our own.
CDK_PACKAGES = ("aws_cdk", "constructs")


def synth(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: CDK_OUTDIR, else cdk.out.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the CDK's cloud assembly, without an account.

    \b
    compilegate synth

    With {"app": "compilegate synth", "context": {"stage": "dev"}} as the cdk.json of a folder, the
    cdk command deploys from there: npx aws-cdk@2 deploy
    """
    for package in CDK_PACKAGES:
        if not importlib.util.find_spec(package):
            install = "pip install 'compilegate[deploy]'" if INSTALLED else "run `make setup`"
            raise EnvironmentNotReadyError(f"{package} is not installed", fix=install)
    folder = (output or Path(os.environ.get("CDK_OUTDIR") or OUTPUT)).resolve()
    # The cdk command hands over what it read; otherwise the folder's own file is read.
    context = os.environ.get("CDK_CONTEXT_JSON") or json.dumps(own_context())
    variables = {**os.environ, "CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": context}
    ended = subprocess.run(  # noqa: S603 - fixed words
        [sys.executable, str(PROJECT / "app.py")],
        env=variables, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise EnvironmentNotReadyError(
            "the CDK app did not synthesise, see above", fix="correct what it names"
        )
    if as_json:
        emit_json({"assembly": str(folder)})
    else:
        typer.echo(str(folder))
