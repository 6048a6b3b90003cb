"""``compilegate facts refresh``: read what an AWS account can tell, and say what changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from compilegate.adapters.facts_refresh import PARTS, Answers, Clients, ask
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import session
from compilegate.cli.common.options import JsonOption
from compilegate.cli.common.output import console, emit_json, say, say_line
from compilegate.cli.facts.region_facts import check_known_region
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.formats import plural
from compilegate.facts import load_facts
from compilegate.facts.refreshed import (
    FILE,
    changes,
    laid_over,
    merged,
    read_refreshed,
    write_refreshed,
)

UNTRIED = (
    "This command follows AWS's documentation and botocore's models; its authors have not run it "
    "against AWS. Compare a price and a quota with the console before you rely on them."
)
UNKNOWN = "-"
Region = Annotated[
    str | None, typer.Option("--region", help="Without it the environment's or cdk.json's.")
]
Only = Annotated[
    list[str] | None, typer.Option("--only", help=f"One of {', '.join(PARTS)}; repeatable.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change and write nothing.")
]
Out = Annotated[
    Path,
    typer.Option("--out", show_default=False, help="Another file than the one that commands read."),
]


def refresh(
    ctx: typer.Context,
    *,
    region: Region = None,
    only: Only = None,
    dry_run: DryRun = False,
    out: Out = FILE,
    as_json: JsonOption = False,
) -> None:
    """Read prices, images and quotas of a region from AWS and keep them in refreshed.json.

    Training prices from the Price List API, whether each image is in its registry
    (DescribeImages), and the account's training quotas (Service Quotas). What was read lies over
    the shipped facts of that region; commit the file and deploy, so that the functions have it.
    What AWS refuses is told and stays as it was.

    Written after AWS's documentation; its authors have not run it against AWS.

    \b
    compilegate facts refresh --dry-run
    compilegate facts refresh --region eu-west-1 --only prices --only quotas

    Exit code 1 when nothing at all could be read.
    """
    settings = project.settings()
    where = check_known_region(region) if region else settings.region
    answers, document, differences = _read(
        where, _parts(only or []), read_refreshed(out), session(ctx).providers.client
    )
    _note_overridden_prices(answers, settings.facts.prices)
    if not dry_run:
        write_refreshed(document, out)
    if as_json:
        emit_json({
            "region": where, "file": None if dry_run else str(out), "changes": differences,
            **_answers_document(answers),
        })  # fmt: skip
    else:
        _show(where, answers, differences)
        _show_end(dry_run=dry_run, out=out)


def _note_overridden_prices(answers: Answers, overridden: Collection[str]) -> None:
    """What a team gives in cdk.json goes before what AWS lists."""
    listed = {row["instance_type"] for row in answers.rows.get("prices", [])}
    if both := sorted(listed & set(overridden)):
        answers.notes.append(f"cdk.json's own price goes before the list's: {', '.join(both)}")


def _answers_document(answers: Answers) -> dict[str, Any]:
    return {
        "read": {part: len(rows) for part, rows in answers.rows.items()},
        "not_read": answers.not_read,
        "notes": answers.notes,
        "untried": UNTRIED,
    }


def _read(
    region: str, parts: Sequence[str], facts_document: Mapping[str, Any], clients: Clients
) -> tuple[Answers, dict[str, Any], list[dict[str, Any]]]:
    """What AWS answered, the whole file with it, and what is known differently by it."""
    before = laid_over(load_facts(), facts_document, region)
    day = datetime.now(tz=UTC).date().isoformat()
    with console(stderr=True).status(f"Asking AWS about {', '.join(parts)} in {region}"):
        answers = ask(before, region, clients, parts=parts, day=day)
    if not answers.rows:
        reasons = "; ".join(f"{part}: {why}" for part, why in answers.not_read.items())
        raise EnvironmentNotReadyError(f"nothing could be read: {reasons}")
    document = merged(facts_document, region, answers.rows)
    after = laid_over(load_facts(), document["regions"], region)
    return answers, document, changes(before, after)


def _parts(only: Sequence[str]) -> Sequence[str]:
    for part in only:
        if part not in PARTS:
            fix = f"use one of {', '.join(PARTS)}"
            raise InvalidInputError("is no part", field="--only", value=part, fix=fix)
    return [part for part in PARTS if not only or part in only]


def _show(region: str, answers: Answers, differences: Sequence[Mapping[str, Any]]) -> None:
    counts = ", ".join(
        plural(len(rows), part.removesuffix("s")) for part, rows in answers.rows.items()
    )
    say(f"Read for {region}: {counts}.")
    for note in answers.notes:
        say(f"- mind: {note}.", hang=2)
    for part, why in answers.not_read.items():
        say(f"- not read, {part}: {why.rstrip('.')}.", hang=2)
    say()
    listed = [row for row in differences if row["part"] == "image" or row["old"] is not None]
    new = [row for row in differences if row not in listed]
    if listed:
        _table(listed)
        say()
    if new:
        kinds = {
            part: sum(row["part"] == part for row in new)
            for part in ("price", "quota", "spot quota")
        }
        words = ", ".join(plural(count, part) for part, count in kinds.items() if count)
        say(f"New, not known before: {words}; --json lists them.")
    if not differences:
        say("Nothing changed.")


def _table(rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in ("changed", "of", "before", "now"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(row["part"], row["what"], _value(row["old"]), _value(row["new"]))
    console().print(table)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "there" if value else "not there"
    return UNKNOWN if value is None else str(value)


def _show_end(*, dry_run: bool, out: Path) -> None:
    if dry_run:
        say("Dry run: nothing was written.")
    else:
        say("Written; commit it, and deploy so that the functions have it:")
        say_line(f"  {out}")
    say(UNTRIED)
