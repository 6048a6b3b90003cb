"""``compilegate statement``: a month's money for finance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.session import Invocation, on_cloud
from compilegate.domain.errors import InvalidInputError
from compilegate_statement import read
from compilegate_statement.page import (
    TEMPLATES,
    owners_table,
    remarks,
    render_statement,
    statement_csv,
    whose,
)


@on_cloud
def statement(
    invocation: Invocation,
    *,
    month: Annotated[str, typer.Option("--month", metavar="YYYY-MM", help="The month, in UTC.")],
    owner: Annotated[
        str | None, typer.Option("--owner", help='Only this owner\'s workloads; "": those without.')
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a row per workload, for spreadsheets.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Save it as a page and print its path."),
    ] = None,
) -> None:
    """Show what a month's trials have cost and runs have saved.

    By owner and workload: spent on trials, saved with its 90 % interval, net, and what the
    holdback has cost. Until 14 days after its end a month is provisional.

    \b
    compilegate statement --month 2026-11
    compilegate statement --month 2026-11 --csv > 2026-11.csv
    compilegate statement --month 2026-11 --owner nlp --page statement.html
    """
    if as_csv and (invocation.as_json or page is not None):
        raise InvalidInputError(
            "excludes --json and --page", field="--csv", fix="call the command once for each"
        )
    cloud = invocation.open_cloud()
    document = read.statement(month, cloud.services, owner=owner).document()
    if as_csv:
        typer.echo(statement_csv(document), nl=False)
    elif page is not None:
        write_whole(page, render_statement(document).encode())
        invocation.answer({"html": str(page)}, "path", path=page)
    else:
        table = owners_table(document)
        invocation.answer(
            document,
            TEMPLATES / "statement",
            table=table,
            remarks=remarks(document),
            whose=whose(document),
        )
