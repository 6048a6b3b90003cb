"""``compilegate discover``: from an AWS account to a ranked list of what may be saved."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common import project
from compilegate.cli.common.outcome import saving_between
from compilegate.cli.common.output import answer, progress, waiting
from compilegate.cli.common.session import JsonOption, LocalOption, Providers, session
from compilegate.domain.economics import Range
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError
from compilegate.domain.utc import iso
from compilegate.ports import Settings
from compilegate.usecases.records import deployed_facts
from compilegate_discover import TEMPLATES
from compilegate_discover.account import Account, unpriced_note
from compilegate_discover.figures import figures_of
from compilegate_discover.files import lines_of, text_of, updated
from compilegate_discover.grouping import Group, group_jobs, place_of
from compilegate_discover.job import Job
from compilegate_discover.names import is_usual
from compilegate_discover.page import cells_of, guessed_note, render
from compilegate_discover.proposal import Code, Found, Measured, Proposal, propose
from compilegate_discover.ranking import (
    Document,
    capped,
    file_of,
    ranked,
    row_of,
    unique_names,
)
from compilegate_discover.source import fetch

SCHEMA, KIND = 1, "compilegate discover"
INDEX, PAGE = "discovered.json", "discovered.html"
# Written into the page, so that another file of its name is left alone.
PAGE_MARK = "<b>compilegate</b><span>training of "
ON_SCREEN = 20
MOST_DAYS = 3650
SINCE = re.compile(r"(\d{1,4})([dw])")
COLUMNS = ("Workload", "USD a year", "Plausible saving", "What stops it, or is unknown")
GUESSED = "framework.name"
WRITTEN, UPDATED, LEFT, NO_FILE = "written", "updated", "left", "none"


@dataclass
class Folder:
    """Where the files are written, and what an earlier run wrote there."""

    path: Path
    earlier: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)

    @classmethod
    def opened(cls, path: Path) -> Folder:
        """The folder; raises InvalidInputError for an index that is not of this command."""
        index = path / INDEX
        by_name: dict[str, Any] | None
        try:
            document = json.loads(index.read_text(encoding="utf-8"))
            is_own = (document["schema"], document["kind"]) == (SCHEMA, KIND)
            rows = [{**row, "signs": [*row["signs"]]} for row in document["workloads"]]
            by_name = {row["name"]: row for row in rows} if is_own else None
        except FileNotFoundError:
            by_name = {}
        except (ValueError, KeyError, TypeError, OSError):
            by_name = None
        if by_name is None:
            fix = "name another folder with --to, or move it away"
            raise InvalidInputError("is not of discover, or damaged", file=str(index), fix=fix)
        return cls(path, by_name)

    def names_of(self, group: Group) -> Iterator[tuple[int, str]]:
        """Names of an earlier run that may be the workload's, with how many signs are the same."""
        for name, row in self.earlier.items():
            if alike := len({*group.signs} & {*row["signs"]}):
                yield alike, name

    def write(self, name: str, proposal: Proposal, head: str) -> Document:
        """Write or update a file: its state, its own lines by path, and a person's paths."""
        file, lines = file_of(self.path, name), [("", head), *lines_of(proposal)]
        last, text = self.earlier.get(name, {}).get("lines"), text_of(lines)
        # The same text is there where a run was stopped before it had written the index.
        if not file.exists() or (not last and _has(file, text)):
            write_whole(file, text.encode())
            return {"state": WRITTEN, "lines": {path: line for path, line in lines if path}}
        if not last:
            self.notes.append(f"{file} is not of discover and stays as it is: move it, or use --to")
            return {"state": LEFT, "lines": {}}
        try:
            before = file.read_bytes().decode()
            text, own, of_person = updated(before, last, lines)
        except (InvalidInputError, yaml.YAMLError, ValueError, OSError) as error:
            self.notes.append(f"{file} cannot be read and stays as it is: {error}")
            return {"state": LEFT, "lines": last}
        if text != before:
            write_whole(file, text.encode())
        return {"state": UPDATED, "lines": own, "of_person": of_person}


def _has(file: Path, text: str) -> bool:
    try:
        return file.read_bytes() == text.encode()
    except OSError:
        return False


def discover(
    ctx: typer.Context,
    *,
    since: Annotated[
        str, typer.Option("--since", metavar="90d", help="How far back: days (d) or weeks (w).")
    ] = "90d",
    regions: Annotated[
        list[str] | None,
        typer.Option("--region", help="Repeatable. Default: the environment's, else cdk.json's."),
    ] = None,
    to: Annotated[
        Path, typer.Option("--to", file_okay=False, help="Folder of the files that are written.")
    ] = Path("jobs"),
    with_source: Annotated[
        bool,
        typer.Option("--with-source", help="Also fetch the code of each newest job, and read it."),
    ] = False,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Jobs to describe one by one without Search.")
    ] = 2000,
    local: LocalOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the training workloads of an account, and what a compiler could save of each.

    Reads training jobs, how busy their GPUs were and what they cost; changes nothing in the
    account and needs no stack. Jobs are grouped into workloads, and the largest plausible saving
    comes first. Each workload gets a file, with where every value is from beside it; TODO is
    what no job says. A second run updates its own lines and leaves yours.

    \b
    compilegate discover
    compilegate discover --since 26w --region us-east-1 --region eu-west-1
    compilegate discover --with-source --to fleet/jobs

    Then: compilegate check jobs/ says what is left to write, and answers for the files that are
    complete. Cost Explorer bills one cent a call, CloudWatch about a cent for 1,000 metrics.
    """
    now = datetime.now(tz=UTC)
    begin, folder = now - _span(since), Folder.opened(to)
    providers = session(ctx).providers
    simulated = providers.local().services.settings.simulated if local else None
    every = {name: project.settings(name) for name in regions or (project.checked_region(),)}
    account = Account(providers.client, most)
    found = [
        one
        for region, settings in every.items()
        for one in _of_region(
            progress(account.jobs(region, begin, now), None, f"Reading jobs of {region}"),
            settings, now,
        )
    ]  # fmt: skip
    if account.unread >= {*every}:
        raise EnvironmentNotReadyError(f"nothing could be read: {'; '.join(account.notes)}")
    found.sort(key=lambda one: (-one.figures.usd_seen, one.group.signs))
    with waiting("Asking CloudWatch and Cost Explorer"):
        found = _measured(account, found, now)
        billed = account.billed([*every], begin, now) if found else {}
    rows = _written(found, folder, providers if with_source else None)
    document = _document(rows, found, billed, folder, [*account.notes, *folder.notes])
    document |= {
        "since": iso(begin.timestamp()), "as_of": iso(now.timestamp()), "regions": [*every],
        "requests": account.requests, "simulated": simulated,
    }  # fmt: skip
    if found:
        _keep(document, folder)
    counts = Counter(row["state"] for row in rows)
    shown = document["workloads"][:ON_SCREEN]
    answer(
        document, TEMPLATES / "discover", as_json=as_json, columns=COLUMNS,
        counts={state: counts[state] for state in (WRITTEN, UPDATED, LEFT)},
        rows=[cells_of(row) for row in shown],
        saving=saving_between(Range(*document["totals"]["plausible_annual_saving_usd"])),
    )  # fmt: skip


def _span(since: str) -> timedelta:
    asked = SINCE.fullmatch(since)
    days = int(asked[1]) * (7 if asked[2] == "w" else 1) if asked else 0
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInputError(
            "is no time back", field="--since", value=since, fix="write it like 90d or 26w"
        )
    return timedelta(days=days)


def _of_region(jobs: Iterable[Job], settings: Settings, now: datetime) -> Iterator[Found]:
    facts = deployed_facts(settings)

    def usd_per_hour(kind: str) -> float | None:
        price = facts.price(kind)
        return None if price is None else price.usd_per_hour

    for group in group_jobs(jobs):
        yield Found(group, figures_of(group, usd_per_hour, now=now.timestamp()), settings)


def _measured(account: Account, found: Sequence[Found], now: datetime) -> list[Found]:
    """The workloads with how busy their GPUs are."""
    known: list[Found] = []
    for region in dict.fromkeys(one.settings.region for one in found):
        own = [one for one in found if one.settings.region == region]
        facts = deployed_facts(own[0].settings)
        busy = account.measured([one.group for one in own], facts, region, now)
        known += [
            replace(one, measured=busy.get(place, Measured())) for place, one in enumerate(own)
        ]
    return known


def _written(found: Sequence[Found], folder: Folder, sources: Providers | None) -> list[Document]:
    """The rows of all workloads, each with the file that was written."""
    rows = []
    for name, one in zip(_names(found, folder), found, strict=True):
        known = one
        goes_on = one.figures.runs > 0 and not one.figures.ended
        if sources is not None and goes_on:
            known = replace(one, code=_code(one, name, folder, sources))
        proposal = capped(propose(known, name, deployed_facts(one.settings)), one.settings)
        row = row_of(known, proposal)
        row |= {"file": None, "state": NO_FILE, "lines": {}, "code": _code_document(known.code)}
        if goes_on:
            row |= {"file": str(file_of(folder.path, name))}
            row |= folder.write(name, proposal, _head(one))
        rows.append(row)
    return rows


def _names(found: Sequence[Found], folder: Folder) -> list[str]:
    """Of each workload the name that it had, or a fresh one."""
    names: dict[int, str] = {}
    likely = [
        (-alike, place, name)
        for place, one in enumerate(found)
        for alike, name in folder.names_of(one.group)
    ]
    for _, place, name in sorted(likely):
        if place not in names and name not in names.values():
            names[place] = name
    others = [place for place in range(len(found)) if place not in names]
    taken = {*names.values(), *folder.earlier}
    fresh = unique_names((_clean(found[place].group) for place in others), taken)
    names |= dict(zip(others, fresh, strict=True))
    return [names[place] for place in range(len(found))]


def _clean(group: Group) -> str:
    """A name that a workload may have: what the jobs' names share, else what sets them apart."""
    setup = group.newest.setup
    # Without scheme and bucket.
    places = [part for _, uri in setup.channels for part in place_of(uri).split("/")[:1:-1]]
    texts = [group.name, Path(setup.program).stem, *places]
    telling = [text for text in texts if not is_usual(text, text.lower(), setup.repository)]
    for text in (*telling, *texts):
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:32].strip("-")
        if name:
            return name
    return "job"


def _code(workload: Found, name: str, folder: Folder, sources: Providers) -> Code | None:
    code = fetch(workload.group, name, folder.path, sources.client("s3", workload.settings.region))
    if isinstance(code, Code):
        return code
    folder.notes.append(f"{name}: its code is not read: {code}")
    return None


def _code_document(code: Code | None) -> Document | None:
    if code is None:
        return None
    compiles = code.script.compiles
    return {
        "folder": code.folder, "script": code.program, "kind": code.script.kind,
        "findings": sorted(code.script.findings),
        "compiles": compiles.to_dict() if compiles else None,
    }  # fmt: skip


def _head(workload: Found) -> str:
    return (
        f"# Written by compilegate discover from training jobs of {workload.settings.region}.\n"
        "# Run again, it updates its own lines; a line that you change stays yours."
    )


def _document(
    rows: Sequence[Document], found: Sequence[Found], billed: Mapping[str, float],
    folder: Folder, notes: list[str],
) -> Document:  # fmt: skip
    listed: Counter[str] = Counter()
    for one in found:
        listed.update(one.figures.usd_by_type)
    unpriced = sorted({kind for one in found for kind in one.figures.unpriced})
    savings = [row["plausible_annual_saving_usd"] for row in rows]
    guessed = [row for row in rows if GUESSED in row["unknown"] and row["stopped_by"] is None]
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "folder": str(folder.path),
        "notes": [
            *notes,
            *([unpriced_note(unpriced)] if unpriced else []),
            *([guessed_note(guessed)] if guessed else []),
        ],
        "totals": {
            "jobs": sum(row["jobs"] for row in rows),
            "usd_seen": sum(row["usd_seen"] for row in rows),
            "usd_per_year": sum(row["usd_per_year"] or 0.0 for row in rows),
            "plausible_annual_saving_usd": [
                sum(saving[end] for saving in savings if saving) for end in (0, 1)
            ],
            "may_be_tried": sum(row["stopped_by"] is None for row in rows),
            "stopped": sum(row["stopped_by"] is not None for row in rows),
        },
        "billed": [
            {"instance_type": kind, "listed_usd": listed[kind], "billed_usd": billed.get(kind, 0.0)}
            for kind in sorted({*listed, *billed})
            if billed
        ],
        "workloads": ranked(rows),
    }


def _keep(document: Document, folder: Folder) -> None:
    """Write the index, with workloads of an earlier run that have no job any more, and the page."""
    page = folder.path / PAGE
    kept = json.dumps({**document, "workloads": [*_all(document, folder)]}, indent=1)
    write_whole(folder.path / INDEX, f"{kept}\n".encode())
    text = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    if page.exists() and PAGE_MARK not in text:
        document["notes"].append(f"{page} is not of discover and stays as it is")
    else:
        write_whole(page, render(document).encode())


def _all(document: Document, folder: Folder) -> Iterator[Mapping[str, Any]]:
    now = {row["name"] for row in document["workloads"]}
    yield from document["workloads"]
    yield from (row for name, row in folder.earlier.items() if name not in now)
