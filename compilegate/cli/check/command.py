"""``compilegate check``: could a compiler apply and pay at all?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from compilegate.cli.check.eligibility import show_eligibility
from compilegate.cli.check.files import Checked, check_files, find_files, is_folder
from compilegate.cli.check.screen import line, show_totals
from compilegate.cli.check.totals import Totals
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import BAD_INPUT
from compilegate.cli.common.options import JsonOption, RegionOption
from compilegate.cli.common.outcome import worst_exit_code
from compilegate.cli.common.output import console, emit_json, error_text, say
from compilegate.domain.errors import InvalidInputError

EXIT_CODES = {"eligible": 0, "ineligible": 10, "benchmark": 11}
# So many are shown in full; of more a line each.
SCREENS = 3

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE_OR_FOLDER", help="Workload files (YAML), or folders of them."),
]
JsonlOption = Annotated[
    bool, typer.Option("--jsonl", help="One JSON document per line, as it is made.")
]


def check(
    files: Files,
    *,
    region: RegionOption = None,
    as_json: JsonOption = False,
    as_jsonl: JsonlOption = False,
) -> None:
    """Say whether a compiler could help, and why.

    Spends nothing and needs no account. A folder is searched for workload files, all the way
    down; of more than three files each gets a line, and the end says what they add up to.

    \b
    compilegate check workloads/article-bert.yaml
    compilegate check workloads/ --region eu-west-1
    compilegate check ~/teams --jsonl > eligibility.jsonl

    Exit code 0 eligible, 10 ineligible, 11 benchmark; of several files the highest. A file that
    is wrong does not stop the others; the exit code is then 2.
    """
    if as_json and as_jsonl:
        raise InvalidInputError("asks for one of two forms", field="--jsonl", fix="drop --json")
    settings = project.settings(region)
    paths = find_files(files)
    alone = len(paths) == 1 and not any(map(is_folder, files))
    results = _followed(check_files(paths, settings), len(paths))
    if alone:
        raise typer.Exit(_one(next(results), as_json=as_json, as_jsonl=as_jsonl))
    if as_json or as_jsonl:
        raise typer.Exit(_documents(results, as_list=as_json))
    raise typer.Exit(_screens(results) if len(paths) <= SCREENS else _lines(results))


def _one(result: Checked, *, as_json: bool, as_jsonl: bool) -> int:
    if as_jsonl:
        return _documents(iter([result]), as_list=False)
    if result.document is None:
        raise result.error or InvalidInputError("cannot be checked", file=result.file)
    if as_json:
        emit_json(result.document)
    else:
        show_eligibility(result.document)
    return EXIT_CODES[result.document["verdict"]]


def _documents(results: Iterator[Checked], *, as_list: bool) -> int:
    """A list with a document or error for every file, or a line each; one held at a time."""
    codes, written = set(), 0
    for result in results:
        codes.add(_code(result))
        if as_list:
            document = result.document or {"error": result.to_dict()["error"]}
            text = json.dumps(document, indent=2, default=str).replace("\n", "\n  ")
            sys.stdout.write(f"{',' if written else '['}\n  {text}")
            written += 1
        else:
            sys.stdout.write(json.dumps(result.to_dict(), separators=(",", ":")) + "\n")
        sys.stdout.flush()  # whoever reads along gets each answer when it is made
    if as_list:
        sys.stdout.write("\n]\n")
    return worst_exit_code(list(codes))


def _screens(results: Iterator[Checked]) -> int:
    codes: list[int] = []
    for result in results:
        if result.document is not None:
            if codes:
                say()
            show_eligibility(result.document)
        codes.append(_code(result))
    return worst_exit_code(codes)


def _lines(results: Iterator[Checked]) -> int:
    codes, totals = set(), Totals()
    for result in results:
        codes.add(_code(result))
        if result.document is None:
            totals.errors += 1
        else:
            totals.add(result.document)
            # Not by echo, which would write through the bar on a terminal.
            sys.stdout.write(f"{line(result.document)}\n")
            sys.stdout.flush()
    show_totals(totals)
    return worst_exit_code(list(codes))


def _code(result: Checked) -> int:
    """The file's exit code; what is wrong with it is told as it comes."""
    if result.document is None:
        sys.stderr.write(f"{error_text(str(result.error))}\n")
        return BAD_INPUT
    return EXIT_CODES[result.document["verdict"]]


def _followed(results: Iterator[Checked], total: int) -> Iterator[Checked]:
    """The same, with a bar on a terminal that waits for many."""
    if total <= SCREENS or not sys.stderr.isatty():
        yield from results
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where somebody watches

    with Progress(
        console=console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()
    ) as bar:
        yield from bar.track(results, total=total, description="Checking")
