"""``compilegate check``: could a compiler apply and pay at all?"""

from __future__ import annotations

import heapq
import json
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from compilegate.adapters.workload_files import WorkloadFile, read_workload
from compilegate.adapters.yaml_file import MOST_BYTES
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import BAD_INPUT, error_document, worst_exit_code
from compilegate.cli.common.outcome import saving_between
from compilegate.cli.common.output import TONE_STYLES, console, emit_json, error_text, progress, say
from compilegate.cli.common.own_compiling import notes_on
from compilegate.cli.common.session import JsonOption, RegionOption
from compilegate.cli.common.template import show
from compilegate.domain.claims import verdict_label
from compilegate.domain.economics import Range
from compilegate.domain.eligibility import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    blocking,
    check_eligibility,
)
from compilegate.domain.errors import InvalidInputError, printable
from compilegate.domain.formats import money, plural
from compilegate.domain.notes import Note, note_documents, said
from compilegate.domain.reasons import Reason, Severity
from compilegate.ports import Settings
from compilegate.usecases.registered import facts_for_workload

# The workload files that paths name, read and checked one after the other.

SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = ("node_modules", "cdk.out", "__pycache__")
# Top-level keys of every workload file; a file with two of them is taken for one.
_SECTION = re.compile(rb"^(schema|framework|model|training|shapes|schedule|quality)\s*:", re.M)
_ENOUGH = 2


@dataclass(frozen=True)
class Checked:
    """One file's answer: its eligibility, or why there is none.

    ``notes`` are remarks about the job.
    """

    file: str
    answer: Eligibility | InvalidInputError
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        if isinstance(self.answer, InvalidInputError):
            return error_document(self.answer)
        return {**self.answer.to_dict(), **note_documents(self.notes)}


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and those in the folders named that look like workload files, each once.

    Raises InvalidInputError for a folder without any.
    """
    by_resolved: dict[Path, Path] = {}
    for path in paths:
        here = list(_in_folder(path)) if is_folder(path) else [path]
        for file in here:
            by_resolved.setdefault(file.absolute(), file)
        if not here:
            raise InvalidInputError(
                "contains no workload file",
                file=str(path),
                fix=f"name a folder with workload files ({' or '.join(SUFFIXES)})",
            )
    return list(by_resolved.values())


def is_folder(path: Path) -> bool:
    """Whether it is a folder; an unreadable path is reported when it is read."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _in_folder(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in SKIPPED_FOLDERS
        )
        for name in sorted(names):
            file = Path(place, name)
            if file.suffix in SUFFIXES and not name.startswith(".") and _looks_like_one(file):
                yield file


def _looks_like_one(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(MOST_BYTES)
    except OSError:
        return True  # reported when it is checked
    return len(set(_SECTION.findall(head))) >= _ENOUGH


def read_files(
    files: Sequence[Path], *, needs_prepared: bool = True
) -> Iterator[tuple[Path, WorkloadFile | InvalidInputError]]:
    """Read each file; an error is yielded like a file.

    Without ``needs_prepared`` data may be missing that a project's own script writes.

    The name of an earlier file is an error: jobs, flag and S3 keys would be the same.
    """
    first: dict[str, Path] = {}
    for file in files:
        try:
            outcome = read_workload(file, needs_prepared=needs_prepared)
        except InvalidInputError as error:
            yield file, error
            continue
        name = outcome.workload.name
        twin = first.setdefault(name, file)
        if twin is file:
            yield file, outcome
            continue
        yield file, InvalidInputError(
            f"is also the name of the workload in {twin}", file=str(file), field="name",
            value=name,
            fix="give each workload its own name, or name the files in commands of their own",
        )  # fmt: skip


def check_files(files: Sequence[Path], settings: Settings) -> Iterator[Checked]:
    """Check each file; an error is yielded like an answer."""
    for file, read in read_files(files, needs_prepared=False):
        if isinstance(read, InvalidInputError):
            yield Checked(str(file), read)
            continue
        facts = facts_for_workload(read.workload, settings)
        eligibility = check_eligibility(read.workload, facts, region=settings.region)
        yield Checked(str(file), eligibility, notes_on(read))


# A line for each of many checks, and what they add up to: verdicts, dollars, the top few.

LISTED = 5
# A note in less room is below its line.
NARROWEST_NOTE = 20
_VERDICT, _NAME = 12, 24


@dataclass(frozen=True, order=True)
class Ranked:
    """A workload in a list of the top few; ``usd`` per year."""

    usd: float
    workload: str
    note: str = field(compare=False)


@dataclass
class Totals:
    """Sums over many checks in constant memory; USD per year.

    The saving is of workloads that may be tried; ``unpriced`` are those without a known price.
    ``against`` counts the workloads whose saving is not against the job as it runs today, by what
    it is against.
    """

    verdicts: Counter[EligibilityVerdict] = field(default_factory=Counter)
    errors: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    training_usd: float = 0.0
    unpriced: int = 0
    saving_low: float = 0.0
    saving_high: float = 0.0
    against: Counter[str] = field(default_factory=Counter)
    stopped_by: Counter[str] = field(default_factory=Counter)
    most_to_gain: list[Ranked] = field(default_factory=list)
    dearest_stopped: list[Ranked] = field(default_factory=list)

    def add_error(self, error: InvalidInputError) -> None:
        """Count a file that ``error`` kept from being checked."""
        self.errors += 1
        self.wrong.update({f"{printable(one.field)} {one.problem}" for one in error.each})

    def add(self, eligibility: Eligibility, notes: Sequence[Note] = ()) -> None:
        """Count one workload's answer, with the remarks about its job."""
        verdict, name = eligibility.verdict, eligibility.workload
        usd = eligibility.economics.annual_training_usd
        self.verdicts[verdict] += 1
        self.training_usd += usd or 0.0
        self.unpriced += usd is None
        if verdict is EligibilityVerdict.INELIGIBLE:
            code, why = first_stop(eligibility)
            self.stopped_by[code] += 1
            _keep(self.dearest_stopped, Ranked(usd or 0.0, name, why))
            return
        saving = eligibility.economics.plausible_annual_saving_usd
        if saving is not None:
            self.saving_low += saving.low
            self.saving_high += saving.high
            self.against.update(said(notes, "against"))
            _keep(self.most_to_gain, Ranked(saving.high, name, _word(verdict)))


def first_stop(eligibility: Eligibility) -> tuple[str, str]:
    """Code and message of what stops a workload: its own reasons come before its candidates'."""
    of_candidates = (candidate.reasons for candidate in eligibility.candidates)
    stops = blocking([*eligibility.reasons, *chain.from_iterable(of_candidates)])
    return (stops[0].code, stops[0].message) if stops else ("none", "no candidate is left")


def _keep(few: list[Ranked], entry: Ranked) -> None:
    if len(few) < LISTED:
        heapq.heappush(few, entry)
    else:
        heapq.heappushpop(few, entry)


def line(eligibility: Eligibility, out: Console, notes: Sequence[Note] = ()) -> str:
    """``not eligible  bert-docs  why``, in as many columns as there are; on few, two lines."""
    word, note = _word(eligibility.verdict), ""
    saving = eligibility.economics.plausible_annual_saving_usd
    if eligibility.verdict is EligibilityVerdict.INELIGIBLE:
        _, note = first_stop(eligibility)
    elif saving is not None:
        note = ", ".join([f"{saving_between(saving)} a year", *said(notes, "against")])
    text = _fitted(f"{word:<{_VERDICT}}  {eligibility.workload:<{_NAME}}  ", note, out.width)
    if out.is_terminal and not out.no_color:
        tone = verdict_label(eligibility.verdict).tone
        return typer.style(word, fg=TONE_STYLES[tone]) + text.removeprefix(word)
    return text


def _word(verdict: EligibilityVerdict) -> str:
    return verdict_label(verdict).text.lower()


def show_totals(totals: Totals) -> None:
    """Verdicts and dollars, then the top few."""
    counts = [
        f"{totals.verdicts[verdict]:,} {_word(verdict)}"
        for verdict in EligibilityVerdict
        if totals.verdicts[verdict]
    ]
    invalid = [f"{plural(totals.errors, 'file')} invalid"] if totals.errors else []
    wrong = [(text, files) for text, files in totals.wrong.most_common(LISTED) if files > 1]
    show(
        "check_totals", {"totals": totals},
        checked=sum(totals.verdicts.values()), counts=counts + invalid, wrong=wrong,
        saving=saving_between(Range(totals.saving_low, totals.saving_high)),
        top=[
            ("Largest savings, at most per year", _few(totals.most_to_gain)),
            ("Largest training costs without an eligible compiler, per year",
             _few(totals.dearest_stopped)),
        ],
    )  # fmt: skip


def _few(ranked: Sequence[Ranked]) -> list[list[str]]:
    """The lines of each, the first one first."""
    width = console().width
    return [
        _fitted(f"    {one.workload:<{_NAME}}  {money(one.usd):>12}  ", one.note, width).split("\n")
        for one in sorted(ranked, reverse=True)
    ]


def _fitted(left: str, note: str, width: int) -> str:
    """The note beside what is left of it, else below; cut at a word where it is too long."""
    room = width - len(left)
    if room < NARROWEST_NOTE and note:
        left, room = f"{' '.join(left.split())}\n    ", width - 4
    return (left + textwrap.shorten(note, room, placeholder="…")).rstrip()


# Shows an eligibility at the terminal: verdict, money, reasons by candidate.

Wording = tuple[str, Severity | None, str, str]


def show_eligibility(eligibility: Eligibility, notes: Sequence[Note] = ()) -> None:
    """The verdict, the money, what holds for all candidates, then each of them.

    A reason that every candidate has is shown once, and candidates with the same answer are shown
    together. ``notes`` are remarks about the job.
    """
    shared = _shared([candidate.reasons for candidate in eligibility.candidates])
    footnotes = {_wording(reason): "" for reason in shared}
    show(
        "check", eligibility.to_dict(),
        eligibility=eligibility, figures=eligibility.economics, notes=said(notes),
        against="; ".join(said(notes, "against")), saving_between=saving_between, shared=shared,
        groups=[_group(group, footnotes) for group in _groups(eligibility.candidates)],
    )  # fmt: skip


def _group(group: Sequence[CandidateEligibility], footnotes: dict[Wording, str]) -> dict[str, Any]:
    """Candidates with the same answer; reasons of an earlier candidate are only named."""
    first, names = group[0], [one.candidate.name for one in group]
    fresh = [reason for reason in first.reasons if _wording(reason) not in footnotes]
    again: dict[str, list[str]] = {}
    for reason in first.reasons:
        earlier = footnotes.setdefault(_wording(reason), names[0])
        if earlier not in ("", names[0]):
            stops = "blocks: " if reason.severity is Severity.BLOCK else ""
            again.setdefault(earlier, []).append(f"{stops}{reason.code}")
    tried = first.verdict is not EligibilityVerdict.INELIGIBLE
    return {
        "title": f"{', '.join(names)} ({first.compiler})",
        "verdict": first.verdict,
        "aside": _aside(first),
        "whys": [one.why for one in group if one.why and tried],
        "fresh": fresh,
        "again": again,
    }


def _aside(candidate: CandidateEligibility) -> str:
    blocks = {one.code for one in blocking(candidate.reasons)}
    return "not worth a benchmark" if blocks == {"saving_below_trial_cost"} else ""


def _wording(reason: Reason) -> Wording:
    """A reason without its place in the file."""
    return reason.code, reason.severity, reason.message, reason.fix


def _shared(reasons: Sequence[Sequence[Reason]]) -> list[Reason]:
    """Reasons that every one of several candidates has, in the order of the first one."""
    if len(reasons) < 2:
        return []
    others = [{_wording(reason) for reason in words} for words in reasons[1:]]
    return [one for one in reasons[0] if all(_wording(one) in words for words in others)]


def _groups(candidates: Sequence[CandidateEligibility]) -> list[list[CandidateEligibility]]:
    """Candidates with the same verdict, compiler and reasons, in their first's order."""
    groups: dict[object, list[CandidateEligibility]] = {}
    for candidate in candidates:
        words = tuple(_wording(reason) for reason in candidate.reasons)
        key = (candidate.compiler, candidate.verdict, words)
        groups.setdefault(key, []).append(candidate)
    return list(groups.values())


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
