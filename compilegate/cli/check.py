"""``compilegate check``: could a compiler apply and pay at all?"""

from __future__ import annotations

import heapq
import json
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from compilegate.adapters.workload_files import TO_DO, WorkloadFile, read_workload
from compilegate.adapters.yaml_document import MOST_BYTES
from compilegate.cli.common import project
from compilegate.cli.common.error_handling import BAD_INPUT, error_document, worst_exit_code
from compilegate.cli.common.outcome import saving_between
from compilegate.cli.common.output import (
    TONE_STYLES,
    console,
    emit_json,
    error_text,
    progress,
    say,
    show,
)
from compilegate.cli.common.session import JsonOption, RegionOption
from compilegate.domain.claims import verdict_label
from compilegate.domain.economics import Range
from compilegate.domain.eligibility.check import (
    CandidateEligibility,
    Eligibility,
    EligibilityVerdict,
    blocking,
    check_eligibility,
)
from compilegate.domain.errors import InvalidInputError, printable
from compilegate.domain.formats import money, plural
from compilegate.domain.naming import LAUNCHER
from compilegate.domain.notes import NO_HOLDBACK, SCRIPT_COMPILES, Note, note_documents, said
from compilegate.domain.production.holdback import share_of
from compilegate.domain.reasons import Reason, Severity
from compilegate.ports import Settings
from compilegate.usecases.records import facts_for_workload
from compilegate_doctor import OwnCompiling, where_it_compiles

EXIT_CODES = {
    EligibilityVerdict.ELIGIBLE: 0,
    EligibilityVerdict.INELIGIBLE: 10,
    EligibilityVerdict.BENCHMARK: 11,
}
# Up to this many are shown in full, more with a line each.
SCREENS = 3
# How many are listed of those that matter most.
LISTED = 5
# A note in less room is below its line.
NARROWEST_NOTE = 20
SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = ("node_modules", "cdk.out", "__pycache__")
# Top-level keys of every workload file; a file with two of them is taken for one.
_SECTION = re.compile(rb"^(schema|framework|model|training|shapes|schedule|quality)\s*:", re.M)
_ENOUGH = 2
# The largest USD per year, with the workload and what is noted of it.
Ranked = list[tuple[float, str, str]]
Wording = tuple[str, Severity | None, str, str]


def check(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE_OR_FOLDER", help="Workload files (YAML), or folders of them."),
    ],
    *,
    region: RegionOption = None,
    as_json: JsonOption = False,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON document per line, as it is made.")
    ] = False,
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
        only = next(results)
        if isinstance(only.answer, InvalidInputError):
            raise only.answer
        if as_json:
            emit_json(only.to_dict())
        else:
            show_eligibility(only.answer, only.notes)
        raise typer.Exit(EXIT_CODES[only.answer.verdict])
    codes: list[int] = []
    if as_json or as_jsonl:
        _print_documents(_counted(results, codes), one_list=as_json)
    elif len(paths) > SCREENS:
        _print_lines(_counted(results, codes))
    else:
        for result in _counted(results, codes):
            if isinstance(result.answer, Eligibility):
                if len(codes) > 1:
                    say()
                show_eligibility(result.answer, result.notes)
    raise typer.Exit(worst_exit_code(codes))


@dataclass(frozen=True)
class Checked:
    """One file's answer, its eligibility or why there is none, and remarks about its job."""

    file: str
    answer: Eligibility | InvalidInputError
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The answer for ``--json``."""
        if isinstance(self.answer, InvalidInputError):
            return error_document(self.answer)
        return {**self.answer.to_dict(), **note_documents(self.notes)}


def _counted(results: Iterator[Checked], codes: list[int]) -> Iterator[Checked]:
    """The results, with their exit codes noted; an error is printed at once."""
    for result in results:
        if isinstance(result.answer, InvalidInputError):
            sys.stderr.write(f"{error_text(_left_in(result.answer))}\n")
            codes.append(BAD_INPUT)
        else:
            codes.append(EXIT_CODES[result.answer.verdict])
        yield result


def _left_in(error: InvalidInputError) -> str:
    """In one line what is left to write, where nothing else is wrong with the file."""
    left = [one.field for one in error.each if one.value == TO_DO]
    if len(left) < len(error.each):
        return str(error)
    return f"{error.file}: {plural(len(left), 'value')} to write (TODO): {', '.join(left)}"


def _print_documents(results: Iterator[Checked], *, one_list: bool) -> None:
    """A document or an error for every file: a line each, or all in one list."""
    before = "["
    for result in results:
        if one_list:
            text = json.dumps(result.to_dict(), indent=2, default=str).replace("\n", "\n  ")
            _write(f"{before}\n  {text}")
            before = ","
        else:
            _write(
                json.dumps({"file": result.file, **result.to_dict()}, separators=(",", ":")) + "\n"
            )
    if one_list:
        _write("\n]\n")


def _print_lines(results: Iterator[Checked]) -> None:
    totals, out = Totals(), console()
    for result in results:
        if isinstance(result.answer, InvalidInputError):
            totals.errors += 1
            each = result.answer.each
            totals.wrong.update({f"{printable(one.field)} {one.problem}" for one in each})
        else:
            totals.add(result.answer, result.notes)
            _write(f"{line(result.answer, out, result.notes)}\n")
    show_totals(totals)


def _write(text: str) -> None:
    """Write each answer as it is made, through the progress bar where there is one."""
    sys.stdout.write(text)
    sys.stdout.flush()


def find_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and those in the folders named that look like workload files, each once.

    Raises InvalidInputError for a folder without any.
    """
    by_resolved: dict[Path, Path] = {}
    for path in paths:
        here = [path]
        if is_folder(path):
            below = files_below(path, SUFFIXES, lambda folder: folder.name in SKIPPED_FOLDERS)
            here = [file for file in below if _looks_like_one(file)]
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


def files_below(
    folder: Path, suffixes: Collection[str], is_skipped: Callable[[Path], bool]
) -> Iterator[Path]:
    """Files with one of the suffixes, in order, without hidden ones and folders to skip."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not is_skipped(here / name)
        )
        for name in sorted(names):
            if not name.startswith(".") and Path(name).suffix in suffixes:
                yield here / name


def _looks_like_one(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return len(set(_SECTION.findall(opened.read(MOST_BYTES)))) >= _ENOUGH
    except OSError:
        return True  # reported when it is checked


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
        yield file, same_name(outcome, twin)


def same_name(file: WorkloadFile, twin: Path) -> InvalidInputError:
    """What is wrong with a file that names its workload as another of the same command does."""
    return InvalidInputError(
        f"is also the name of the workload in {twin}", file=str(file.path), field="name",
        value=file.workload.name,
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
    most_to_gain: Ranked = field(default_factory=list)
    dearest_stopped: Ranked = field(default_factory=list)

    def add(self, eligibility: Eligibility, notes: Sequence[Note] = ()) -> None:
        """Count one workload's answer, with the remarks about its job."""
        verdict, name = eligibility.verdict, eligibility.workload
        usd = eligibility.economics.annual_training_usd
        saving = eligibility.economics.plausible_annual_saving_usd
        self.verdicts[verdict] += 1
        self.training_usd += usd or 0.0
        self.unpriced += usd is None
        if verdict is EligibilityVerdict.INELIGIBLE:
            code, why = first_stop(eligibility)
            self.stopped_by[code] += 1
            _keep(self.dearest_stopped, (usd or 0.0, name, why))
        elif saving:
            self.saving_low += saving.low
            self.saving_high += saving.high
            self.against.update(said(notes, "against"))
            _keep(self.most_to_gain, (saving.high, name, _word(verdict)))


def _keep(few: Ranked, entry: tuple[float, str, str]) -> None:
    if len(few) < LISTED:
        heapq.heappush(few, entry)
    else:
        heapq.heappushpop(few, entry)


def first_stop(eligibility: Eligibility) -> tuple[str, str]:
    """Code and message of what stops a workload: its own reasons come before its candidates'."""
    of_candidates = (candidate.reasons for candidate in eligibility.candidates)
    stops = blocking([*eligibility.reasons, *chain.from_iterable(of_candidates)])
    return (stops[0].code, stops[0].message) if stops else ("none", "no candidate is left")


def line(eligibility: Eligibility, out: Console, notes: Sequence[Note] = ()) -> str:
    """``not eligible  bert-docs  why``, in as many columns as there are; on few, two lines."""
    word, note = _word(eligibility.verdict), ""
    saving = eligibility.economics.plausible_annual_saving_usd
    if eligibility.verdict is EligibilityVerdict.INELIGIBLE:
        _, note = first_stop(eligibility)
    elif saving:
        note = ", ".join([f"{saving_between(saving)} a year", *said(notes, "against")])
    text = _fitted(f"{word:<12}  {eligibility.workload:<24}  ", note, out.width)
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
    if totals.errors:
        counts.append(f"{plural(totals.errors, 'file')} invalid")
    width = console().width
    tops = {
        "Largest savings, at most per year": totals.most_to_gain,
        "Largest training costs without an eligible compiler, per year": totals.dearest_stopped,
    }
    show(
        "check_totals", {"totals": totals}, checked=sum(totals.verdicts.values()), counts=counts,
        wrong=[(text, files) for text, files in totals.wrong.most_common(LISTED) if files > 1],
        saving=saving_between(Range(totals.saving_low, totals.saving_high)),
        top={
            title: [
                _fitted(f"    {name:<24}  {money(usd):>12}  ", note, width).split("\n")
                for usd, name, note in sorted(ranked, reverse=True)
            ]
            for title, ranked in tops.items()
        },
    )  # fmt: skip


def _fitted(left: str, note: str, width: int) -> str:
    """The note beside what is left of it, else below; cut at a word where it is too long."""
    room = width - len(left)
    if room < NARROWEST_NOTE and note:
        left, room = f"{' '.join(left.split())}\n    ", width - 4
    return (left + textwrap.shorten(note, room, placeholder="…")).rstrip()


def show_eligibility(eligibility: Eligibility, notes: Sequence[Note] = ()) -> None:
    """The verdict, the money, what holds for all candidates, then each of them.

    A reason that every candidate has is shown once, and candidates with the same answer are shown
    together; reasons of an earlier candidate are only named. ``notes`` are remarks about the job.
    """
    candidates = eligibility.candidates
    shared: list[Reason] = []
    if len(candidates) > 1:
        every = [set(_wordings(candidate)) for candidate in candidates]
        first = zip(_wordings(candidates[0]), candidates[0].reasons, strict=True)
        shared = [reason for words, reason in first if all(words in others for others in every)]
    groups: dict[object, list[CandidateEligibility]] = {}
    for candidate in candidates:
        key = (candidate.compiler, candidate.verdict, *_wordings(candidate))
        groups.setdefault(key, []).append(candidate)
    # The candidate that a reason was first said of; of what is said of all, none.
    said_of = {_wording(reason): "" for reason in shared}
    show(
        "check", eligibility.to_dict(),
        eligibility=eligibility, figures=eligibility.economics, notes=said(notes),
        against="; ".join(said(notes, "against")), saving_between=saving_between, shared=shared,
        groups=[_group(group, said_of) for group in groups.values()],
    )  # fmt: skip


def _wording(reason: Reason) -> Wording:
    """A reason without its place in the file."""
    return reason.code, reason.severity, reason.message, reason.fix


def _wordings(candidate: CandidateEligibility) -> list[Wording]:
    return [_wording(reason) for reason in candidate.reasons]


def _group(group: Sequence[CandidateEligibility], said_of: dict[Wording, str]) -> dict[str, Any]:
    """Candidates with the same answer."""
    first, names = group[0], [one.candidate.name for one in group]
    fresh = [reason for reason in first.reasons if _wording(reason) not in said_of]
    same_as: dict[str, list[str]] = {}
    for reason in first.reasons:
        earlier = said_of.setdefault(_wording(reason), names[0])
        if earlier not in ("", names[0]):
            stops = "blocks: " if reason.severity is Severity.BLOCK else ""
            same_as.setdefault(earlier, []).append(f"{stops}{reason.code}")
    tried = first.verdict is not EligibilityVerdict.INELIGIBLE
    unpaid = {one.code for one in blocking(first.reasons)} == {"saving_below_trial_cost"}
    return {
        "title": f"{', '.join(names)} ({first.compiler})",
        "verdict": first.verdict,
        "aside": "not worth a benchmark" if unpaid else "",
        "whys": [one.why for one in group if one.why and tried],
        "fresh": fresh,
        "same_as": same_as,
    }


def notes_on(file: WorkloadFile) -> tuple[Note, ...]:
    """What there is to remark on a file."""
    held_back = share_of(file.workload, None) > 0
    return _compiling_of(file) if held_back else (*_compiling_of(file), Note(NO_HOLDBACK, {}))


def _compiling_of(file: WorkloadFile) -> tuple[Note, ...]:
    """That the job's own script compiles, and where it does.

    Only under the launcher, which leaves such a call out of the baseline; another entry point's
    baseline is the script as it is.
    """
    training = file.workload.training
    if training.entry_point != LAUNCHER:
        return ()
    script = str(training.hyperparameters.get("script", ""))
    try:
        content = (file.source_dir / script).read_bytes()
    except OSError:
        return ()
    return note_of(script, where_it_compiles(content, training.hyperparameters))


def note_of(script: str, compiling: OwnCompiling | None) -> tuple[Note, ...]:
    """Of the place in a script of this name; nothing where it is not seen to compile."""
    return (Note(SCRIPT_COMPILES, {"script": script, **compiling.to_dict()}),) if compiling else ()
