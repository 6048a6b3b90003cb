"""``compilegate report``: fetch a trial's report, or render it again from its records."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from compilegate.cli.common import project
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.error_handling import session
from compilegate.cli.common.options import (
    REPORTS,
    JsonOption,
    LocalOption,
    ReportsOption,
    StageOption,
)
from compilegate.cli.common.outcome import save_report
from compilegate.cli.common.output import emit_json, say_line
from compilegate.cli.common.providers import Providers, open_cloud
from compilegate.domain.errors import (
    EnvironmentNotReadyError,
    InvalidInputError,
    NotFoundError,
)
from compilegate.domain.production.history import history
from compilegate.ports import Services
from compilegate.usecases.production.history_page import bodies, history_page
from compilegate.usecases.trial.documents import Trial


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
    providers = session(ctx).providers
    chosen = project.stage_name(stage)
    if story:
        path = find_story(providers, _named(workload, trial), out, local=local, stage=chosen)
    else:
        path = _find(providers, workload, trial, out, local=local, stage=chosen)
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
    providers: Providers,
    workload: str | None,
    trial: str | None,
    out: Path,
    *,
    local: bool,
    stage: str,
) -> Path:
    try:
        cloud = open_cloud(providers, local=local, stage=stage)
    except EnvironmentNotReadyError:
        saved = _saved(workload, trial, out) if local else None
        if saved is None:
            raise
        return saved
    return save_report(_newest(cloud, workload, trial), cloud.services, out)


def _newest(cloud: Cloud, workload: str | None, trial: str | None) -> Trial:
    names = [workload] if workload else list(cloud.overview.workloads())
    decided = [
        (decision.at, Trial(name, decision.trial, ""))
        for name in names
        for decision in history(cloud.services.ledger.entries(name)).decided
        if trial in (None, decision.trial)
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
        name, _, kind = path.parent.name.rpartition("-")
        if workload in (None, name) and trial in (None, kind):
            typer.echo("The local cloud does not run; this report was saved before.", err=True)
            return path
    return None


FOLDER, STEM = "{}-story", "story"


def find_story(providers: Providers, workload: str, out: Path, *, local: bool, stage: str) -> Path:
    """The page; with ``local`` and no local cloud running, the one that was saved before."""
    try:
        cloud = open_cloud(providers, local=local, stage=stage)
    except EnvironmentNotReadyError:
        saved = _page(workload, out)
        if not (local and saved.is_file()):
            raise
        typer.echo("The local cloud does not run; this story was saved before.", err=True)
        return saved
    return save_story(workload, cloud.services, out)


def save_story(workload: str, services: Services, out: Path) -> Path:
    """Render the history as it stands now and save its files; raises NotFoundError without any."""
    page = _page(workload, out)
    files = bodies(history_page(workload, services))
    page.parent.mkdir(parents=True, exist_ok=True)
    for extension, body in files.items():
        page.with_suffix(f".{extension}").write_bytes(body)
    return page


def _page(workload: str, out: Path) -> Path:
    return out / FOLDER.format(workload) / f"{STEM}.html"
