"""``compilegate facts refresh``: read facts from an AWS account, and show what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from compilegate.adapters.facts_refresh import PARTS, Answers, Clients, ask
from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common import project
from compilegate.cli.common.output import waiting
from compilegate.cli.common.session import JsonOption, session
from compilegate.cli.common.template import answer
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.formats import plural
from compilegate.facts import load_facts
from compilegate.facts.refreshed import (
    FILE,
    changes,
    laid_over,
    merged,
    read_refreshed,
    refreshed_body,
)
from compilegate.facts.topics import check_region

UNTRIED = (
    "This command follows AWS's documentation and botocore's models; its authors have not run it "
    "against AWS. Compare a price and a quota with the console before you rely on them."
)
UNKNOWN = "-"
NEW_KINDS = ("price", "quota", "spot quota")
Region = Annotated[
    str | None,
    typer.Option("--region", help="Default: the environment's, else the one in cdk.json."),
]
Only = Annotated[
    list[str] | None, typer.Option("--only", help=f"One of {', '.join(PARTS)}; repeatable.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change and write nothing.")
]
Out = Annotated[
    Path,
    typer.Option("--out", show_default=False, help="Write to another file."),
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
    """Read prices, images and quotas of a region from AWS.

    Reads training prices (Price List API), whether each image is in its registry (DescribeImages),
    and the account's training quotas (Service Quotas), and keeps them in refreshed.json. The file
    overrides the shipped facts of that region; commit and deploy it so that the functions use it.
    Parts that AWS refuses are reported and stay unchanged.

    Written from AWS's documentation; not yet run against AWS.

    \b
    compilegate facts refresh --dry-run
    compilegate facts refresh --region eu-west-1 --only prices --only quotas

    Exit code 1 when nothing could be read.
    """
    settings = project.settings()
    where = check_known_region(region) if region else settings.region
    answers, document, differences = _read(
        where, _parts(only or []), read_refreshed(out), session(ctx).providers.client
    )
    priced = {row["instance_type"] for row in answers.rows.get("prices", [])}
    if both := sorted(priced & set(settings.facts.prices)):
        answers.notes.append(f"cdk.json's own price overrides the list's: {', '.join(both)}")
    if not dry_run:
        write_whole(out, refreshed_body(document))
    document = {
        "region": where, "file": None if dry_run else str(out), "changes": differences,
        "read": {part: len(rows) for part, rows in answers.rows.items()},
        "not_read": answers.not_read, "notes": answers.notes, "untried": UNTRIED,
    }  # fmt: skip
    listed = [row for row in differences if row["part"] == "image" or row["old"] is not None]
    new = [str(row["part"]) for row in differences if row not in listed]
    answer(
        document, "facts_refresh", as_json=as_json,
        cells=[
            (row["part"], row["what"], _value(row["old"]), _value(row["new"])) for row in listed
        ],
        new=[plural(new.count(kind), kind) for kind in NEW_KINDS if kind in new],
    )  # fmt: skip


def check_known_region(region: str) -> str:
    """The region; raises InvalidInputError where no registry of images serves it."""
    registries = load_facts().registries.values()
    check_region(region, sorted({name for one in registries for name in one.accounts}))
    return region


def _read(
    region: str, parts: Sequence[str], facts_document: Mapping[str, Any], clients: Clients
) -> tuple[Answers, dict[str, Any], list[dict[str, Any]]]:
    """AWS's answers, the whole file with them, and the changes that they make."""
    before = laid_over(load_facts(), facts_document, region)
    day = datetime.now(tz=UTC).date().isoformat()
    with waiting(f"Asking AWS about {', '.join(parts)} in {region}"):
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
            raise InvalidInputError("is not a part", field="--only", value=part, fix=fix)
    return [part for part in PARTS if not only or part in only]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "there" if value else "not there"
    return UNKNOWN if value is None else str(value)
