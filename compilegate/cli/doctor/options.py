"""The arguments and options of ``compilegate doctor``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Part(StrEnum):
    """What ``--only`` takes."""

    BOOTSTRAP = "bootstrap"
    STACK = "stack"
    VPC = "vpc"
    QUOTAS = "quotas"


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
