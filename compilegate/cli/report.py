"""``compilegate report``: fetch a trial's report, or render it again from its records."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from compilegate.cli import project
from compilegate.cli.cloud import Cloud
from compilegate.cli.doors import Doors, open_cloud
from compilegate.cli.options import REPORTS, JsonOption, LocalOption, ReportsOption, StageOption
from compilegate.cli.outcome import save_report
from compilegate.cli.output import emit_json, say_line
from compilegate.cli.shell import session
from compilegate.cli.story import find_story
from compilegate.domain.errors import (
    EnvironmentNotReadyError,
    InvalidInputError,
    NotFoundError,
)
from compilegate.usecases.trial import Trial


def report(
    ctx: typer.Context,
    workload: Annotated[
        str | None, typer.Argument(metavar="WORKLOAD", help="Without it, the newest decision.")
    ] = None,
    *,
    trial: Annotated[
        str | None, typer.Option("--trial", metavar="ID", help="Without it, the newest trial.")
    ] = None,
    story: Annotated[
        bool, typer.Option("--story", help="The workload's whole story instead of one trial.")
    ] = False,
    local: LocalOption = False,
    stage: StageOption = None,
    out: ReportsOption = REPORTS,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Save a trial's report as HTML, Markdown and JSON, and say where.

    With --story it is the workload's: registration, trials, every production run, alarms, every
    change of the flag, and the money, as they stand now.

    \b
    compilegate report
    compilegate report bert-docs --open
    compilegate report demo-lm --trial 0mabc123 --local
    compilegate report bert-docs --story --open

    With --local and no local cloud running, the reports saved before are looked through.
    """
    doors = session(ctx).doors
    chosen = project.stage_name(stage)
    if story:
        path = find_story(doors, _named(workload, trial), out, local=local, stage=chosen)
    else:
        path = _find(doors, workload, trial, out, local=local, stage=chosen)
    _say(path, as_json=as_json)
    if open_it and not webbrowser.open(path.resolve().as_uri()):
        raise EnvironmentNotReadyError(f"No browser could be opened. Fix: open {path} yourself.")


def _say(path: Path, *, as_json: bool) -> None:
    if as_json:
        files = {"html": ".html", "markdown": ".md", "json": ".json"}
        emit_json({name: str(path.with_suffix(ending)) for name, ending in files.items()})
    else:
        say_line(str(path))


def _named(workload: str | None, trial: str | None) -> str:
    if workload is None or trial is not None:
        raise InvalidInputError(
            "is of one workload and of all its trials",
            field="--story",
            fix="name the workload, without --trial: compilegate report bert-docs --story",
        )
    return workload


def _find(
    doors: Doors, workload: str | None, trial: str | None, out: Path, *, local: bool, stage: str
) -> Path:
    try:
        cloud = open_cloud(doors, local=local, stage=stage)
    except EnvironmentNotReadyError:
        saved = _saved(workload, trial, out) if local else None
        if saved is None:
            raise
        return saved
    return save_report(_newest(cloud, workload, trial), cloud.services, out)


def _newest(cloud: Cloud, workload: str | None, trial: str | None) -> Trial:
    names = [workload] if workload else list(cloud.overview.workloads())
    decided = [
        (entry["at"], Trial(name, str(entry["trial"]), ""))
        for name in names
        for entry in cloud.services.ledger.entries(name)
        if entry.get("kind") == "decision" and trial in (None, entry["trial"])
    ]
    if not decided:
        what = " ".join(part for part in (workload, trial and f"trial {trial}") if part)
        raise NotFoundError(
            f"there is no decision{f' of {what}' if what else ''} yet. "
            "Fix: see what there is with `compilegate status`"
        )
    return max(decided, key=lambda pair: pair[0])[1]


def _saved(workload: str | None, trial: str | None, out: Path) -> Path | None:
    """The newest report saved before; a folder's name is ``{workload}-{trial}``."""
    reports = sorted(
        out.glob("*/report.html"), key=lambda path: path.parent.name.rpartition("-")[2]
    )
    for path in reversed(reports):
        name, _, found = path.parent.name.rpartition("-")
        if workload in (None, name) and trial in (None, found):
            typer.echo("The local cloud does not run; this report was saved before.", err=True)
            return path
    return None
