"""``compilegate doctor``: what in a training script breaks or slows a compiled run?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from compilegate import __version__
from compilegate.cli import doctor_screen
from compilegate.cli.deployment_parts import Part
from compilegate.cli.doctor_files import Target, targets
from compilegate.cli.options import JsonOption, LocalOption, StageOption
from compilegate.cli.output import console, emit_json
from compilegate.cli.shell import session
from compilegate.doctor import COMPILERS, Examination, Severity, examine
from compilegate.doctor.sarif import sarif
from compilegate.domain.eligibility.reason import Severity as Weight
from compilegate.domain.errors import InvalidInputError

CLEAN, BREAKS, SLOWS, BAD_INPUT = 0, 10, 11, 2
DEPLOYMENT_CODES = {None: CLEAN, Weight.BLOCK: BREAKS, Weight.WARN: SLOWS}
MANY = 40
FRAMEWORK = re.compile(rb"torch|tensorflow|keras|transformers|accelerate|lightning|deepspeed")


class Compiler(StrEnum):
    """What ``--compiler`` takes."""

    TORCH_COMPILE = "torch_compile"
    MANAGED = "sagemaker_training_compiler"
    ALL = "all"


PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", help="Python files, folders, or workload files (YAML)."),
]
DeploymentOption = Annotated[
    bool,
    typer.Option("--deployment", help="Examine the AWS account and its network instead."),
]
OnlyOption = Annotated[
    Part | None, typer.Option("--only", help="With --deployment: examine this part alone.")
]
CompilerOption = Annotated[
    Compiler | None,
    typer.Option(
        "--compiler",
        help="What the script is to be compiled with; else what its imports, or the workload's "
        "candidates, say.",
    ),
]
SarifOption = Annotated[
    bool, typer.Option("--sarif", help="One SARIF 2.1.0 log, for code review tools.")
]


def doctor(
    ctx: typer.Context,
    paths: PathsArgument = None,
    *,
    deployment: DeploymentOption = False,
    only: OnlyOption = None,
    local: LocalOption = False,
    stage: StageOption = None,
    compiler: CompilerOption = None,
    as_sarif: SarifOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read training scripts, without running them, for what breaks or slows a compiled run.

    \b
    compilegate doctor train.py
    compilegate doctor src --compiler all
    compilegate doctor workloads/article-bert.yaml
    compilegate doctor src --sarif > doctor.sarif
    compilegate doctor --deployment workloads/article-bert.yaml

    A workload file stands for its entry point, its candidates' compilers and its
    hyperparameters. A line with # compilegate: ignore[rule-id] and a reason is left alone.

    With --deployment it examines what jobs need of the AWS account: bootstrap, stack, role, and the
    VPC that cdk.json names. Workload files say which instances are needed.

    Exit code 0 nothing but notes, 11 something slows it, 10 something breaks it, 2 bad input.
    """
    _check_options(
        {"--sarif": as_sarif, "--compiler": compiler} if deployment else {"--only": only},
        deployment=deployment,
    )
    if deployment:
        from compilegate.cli.deployment_check import check_deployment  # noqa: PLC0415 - boto3

        severity = check_deployment(
            session(ctx).doors, paths or (), only=only, stage=stage, local=local, as_json=as_json
        )
        raise typer.Exit(DEPLOYMENT_CODES[severity])
    if not paths:
        raise InvalidInputError(
            "is missing", field="PATH", fix="name Python files, folders or workload files; for "
            "the AWS account use --deployment"
        )  # fmt: skip
    if as_sarif and as_json:
        raise InvalidInputError("are two formats", field="--json and --sarif", fix="choose one")
    wanted = {None: (), Compiler.ALL: COMPILERS}.get(compiler, (str(compiler),))
    examinations, unreadable = _examine(targets(paths, wanted))
    if as_sarif:
        emit_json(sarif(examinations, version=__version__))
    elif as_json:
        emit_json(_document(examinations, unreadable))
    else:
        doctor_screen.show(examinations, unreadable)
    raise typer.Exit(_exit_code(examinations, unreadable))


def _check_options(others: Mapping[str, object], *, deployment: bool) -> None:
    """Refuses options that belong to the other examination."""
    for name, value in others.items():
        if value:
            what = "the account" if deployment else "scripts"
            fix = "leave out either it or --deployment" if deployment else "add --deployment"
            raise InvalidInputError(f"has no effect on {what}", field=name, fix=fix)


def _examine(found: Sequence[Target]) -> tuple[list[Examination], dict[str, str]]:
    """Look at each file; one that a folder holds and that is broken does not stop the others."""
    examinations: list[Examination] = []
    unreadable: dict[str, str] = {}
    shown = console(stderr=True)
    progress = len(found) > MANY and shown.is_terminal
    for target in track(found, "Reading", console=shown, transient=True, disable=not progress):
        try:
            content = target.read()
            if target.found and not FRAMEWORK.search(content):
                examinations.append(Examination(target.name, (), False, (), 0, ()))
                continue
            examinations.append(
                examine(content, target.name, compilers=target.compilers, given=target.given)
            )
        except InvalidInputError as error:
            if not target.found:
                raise
            unreadable[target.name] = str(error)
    return examinations, unreadable


def _document(examinations: Sequence[Examination], unreadable: dict[str, str]) -> dict[str, object]:
    return {
        "schema": 1,
        "counts": doctor_screen.counts(examinations),
        "files": [item.to_dict() for item in examinations if item.is_training],
        "unreadable": [{"file": file, "problem": text} for file, text in unreadable.items()],
    }


def _exit_code(examinations: Sequence[Examination], unreadable: dict[str, str]) -> int:
    found = {finding.severity for item in examinations for finding in item.findings}
    if Severity.BREAKS in found:
        return BREAKS
    if Severity.SLOWS in found:
        return SLOWS
    return BAD_INPUT if unreadable else CLEAN
