"""``compilegate check``: could a compiler apply and pay at all?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from compilegate.cli.check.batch import Totals, line, show_totals
from compilegate.cli.check.eligibility import show_eligibility
from compilegate.cli.check.files import Checked, check_files, find_files, is_folder
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import BAD_INPUT, worst_exit_code
from compilegate.cli.common.output import console, emit_json, error_text, progress, say
from compilegate.cli.common.session import JsonOption, RegionOption
from compilegate.domain.eligibility import Eligibility, EligibilityVerdict
from compilegate.domain.errors import InvalidInputError

EXIT_CODES = {
    EligibilityVerdict.ELIGIBLE: 0,
    EligibilityVerdict.INELIGIBLE: 10,
    EligibilityVerdict.BENCHMARK: 11,
}
# Up to this many are shown in full, more with a line each.
SCREENS = 3

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE_OR_FOLDER", help="Workload files (YAML), or folders of them."),
]
JsonlOption = Annotated[
    bool, typer.Option("--jsonl", help="Print one JSON document per line, as it is made.")
]


def check(
    files: Files,
    *,
    region: RegionOption = None,
    as_json: JsonOption = False,
    as_jsonl: JsonlOption = False,
) -> None:
    """Say whether a compiler could help, and why.

    Spends nothing and needs no account. Folders are searched recursively for workload files. More
    than three files get a line each, and totals at the end.

    \b
    compilegate check workloads/article-bert.yaml
    compilegate check workloads/ --region eu-west-1
    compilegate check ~/teams --jsonl > eligibility.jsonl

    Exit code 0 eligible, 10 ineligible, 11 benchmark; of several files the highest. An invalid
    file does not stop the others; the exit code is then 2.
    """
    if as_json and as_jsonl:
        raise InvalidInputError("excludes --json", field="--jsonl", fix="drop one of them")
    settings = project.settings(region)
    paths = find_files(files)
    results = progress(check_files(paths, settings), len(paths), "Checking", above=SCREENS)
    if len(paths) == 1 and not any(map(is_folder, files)) and not as_jsonl:
        raise typer.Exit(_show_one(next(results), as_json=as_json))
    show: Callable[[Iterator[Checked]], int] = _lines if len(paths) > SCREENS else _screens
    if as_json or as_jsonl:
        show = _json_list if as_json else _json_lines
    raise typer.Exit(show(results))


def _show_one(result: Checked, *, as_json: bool) -> int:
    if isinstance(result.answer, InvalidInputError):
        raise result.answer
    if as_json:
        emit_json(result.to_dict())
    else:
        show_eligibility(result.answer, result.notes)
    return _exit_code(result)


def _json_list(results: Iterator[Checked]) -> int:
    """A list with a document or an error for every file; one is held at a time."""
    codes, before = set(), "["
    for result in results:
        codes.add(_exit_code(result))
        text = json.dumps(result.to_dict(), indent=2, default=str).replace("\n", "\n  ")
        _write(f"{before}\n  {text}")
        before = ","
    _write("\n]\n")
    return worst_exit_code(codes)


def _json_lines(results: Iterator[Checked]) -> int:
    codes = set()
    for result in results:
        codes.add(_exit_code(result))
        document = {"file": result.file, **result.to_dict()}
        _write(json.dumps(document, separators=(",", ":")) + "\n")
    return worst_exit_code(codes)


def _screens(results: Iterator[Checked]) -> int:
    codes: list[int] = []
    for result in results:
        if isinstance(result.answer, Eligibility):
            if codes:
                say()
            show_eligibility(result.answer, result.notes)
        codes.append(_exit_code(result))
    return worst_exit_code(codes)


def _lines(results: Iterator[Checked]) -> int:
    codes, totals, out = set(), Totals(), console()
    for result in results:
        codes.add(_exit_code(result))
        if isinstance(result.answer, InvalidInputError):
            totals.add_error(result.answer)
            continue
        totals.add(result.answer, result.notes)
        _write(f"{line(result.answer, out, result.notes)}\n")
    show_totals(totals)
    return worst_exit_code(codes)


def _write(text: str) -> None:
    """Write each answer as it is made, through the progress bar where there is one."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _exit_code(result: Checked) -> int:
    """The file's exit code; an error is printed at once."""
    if isinstance(result.answer, InvalidInputError):
        sys.stderr.write(f"{error_text(str(result.answer))}\n")
        return BAD_INPUT
    return EXIT_CODES[result.answer.verdict]
