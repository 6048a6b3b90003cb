"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compilegate.cli.common.error_handling import session


def _for_programs(ctx: typer.Context, json_output: bool) -> bool:
    session(ctx).as_json = json_output  # an error is then a document, too
    return json_output


JsonOption = Annotated[
    bool,
    typer.Option("--json", help="One JSON document, for programs.", callback=_for_programs),
]
LocalOption = Annotated[
    bool, typer.Option("--local", help="Use the embedded cloud on this machine.")
]
StageOption = Annotated[
    str | None,
    typer.Option(
        "--stage",
        envvar="COMPILEGATE_STAGE",
        help="The deployed stage; without it the one that cdk.json names.",
    ),
]
RegionOption = Annotated[
    str | None,
    typer.Option(
        "--region",
        help="The AWS region; without it the environment's, else the one that cdk.json names.",
        show_default=False,
    ),
]
NameArgument = Annotated[str, typer.Argument(metavar="WORKLOAD", help="The workload's name.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the ledger and told.")
]
WorkloadFiles = Annotated[list[Path], typer.Argument(metavar="FILE", help="Workload files (YAML).")]
ReportsOption = Annotated[
    Path, typer.Option("--out", help="Folder that reports are saved in.", file_okay=False)
]
REPORTS = Path("compilegate-reports")
