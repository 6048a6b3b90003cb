"""``compilegate report`` and ``digest``: what trials and weeks came to."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.outcome import newest_decision, save_report
from compilegate.cli.common.session import (
    REPORTS,
    Invocation,
    ReportsOption,
    on_cloud,
    workload_names,
)
from compilegate.domain.errors import EnvironmentNotReadyError, InvalidInputError, NotFoundError
from compilegate.ports import Services
from compilegate.report.fleet import render_fleet
from compilegate.usecases.operations.weekly_digest import digests, fleet
from compilegate.usecases.production.announce_review import history_page


@on_cloud
def report(
    invocation: Invocation,
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKLOAD",
            help="Default: that of the newest decision.",
            autocompletion=workload_names,
        ),
    ] = None,
    *,
    trial: Annotated[
        str | None, typer.Option("--trial", metavar="ID", help="Default: the newest trial.")
    ] = None,
    workload_history: Annotated[
        bool, typer.Option("--history", help="The workload's history instead of one trial.")
    ] = False,
    out: ReportsOption = REPORTS,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Save a trial's report and print its path.

    As HTML, Markdown and JSON. With --history, saves the workload's history instead: registration,
    trials, production runs, alarms, flag changes and money, as of now.

    \b
    compilegate report
    compilegate report bert-docs --open
    compilegate report demo-lm --trial 0mabc123 --local
    compilegate report bert-docs --history --open

    With --local and no local cloud running, from what trials left in this folder, else prints the
    path of a report saved before.
    """
    if workload_history and (workload is None or trial is not None):
        raise InvalidInputError(
            "requires one workload and excludes --trial", field="--history",
            fix="use: compilegate report WORKLOAD --history",
        )  # fmt: skip
    history = out / f"{workload}-history" / "history.html"
    try:
        cloud = invocation.open_records(workload, trial)
    except EnvironmentNotReadyError:
        path = history if workload_history else _saved(workload, trial, out)
        if not invocation.local or not path.is_file():
            raise
        typer.echo("The local cloud does not run; this report was saved before.", err=True)
    else:
        if workload_history:
            path = save_history(str(workload), cloud.services, out)
        else:
            newest = newest_decision(workload, trial, cloud)
            if newest is None:
                what = " ".join(part for part in (workload, trial and f"trial {trial}") if part)
                raise NotFoundError(
                    f"there is no decision{f' of {what}' if what else ''} yet",
                    fix="list the trials with `compilegate status`",
                )
            path = save_report(newest[0], cloud.services, out)
    if open_it and not webbrowser.open(path.resolve().as_uri()):
        raise EnvironmentNotReadyError("No browser could be opened", fix=f"open {path} yourself.")
    invocation.answer(page_files(path), "path", path=path)


def page_files(page: Path) -> dict[str, str]:
    """A saved page's files by format."""
    suffixes = {"html": ".html", "markdown": ".md", "json": ".json"}
    return {name: str(page.with_suffix(suffix)) for name, suffix in suffixes.items()}


def save_history(workload: str, services: Services, out: Path) -> Path:
    """Render the history as of now and save its files; raises NotFoundError without any."""
    page = out / f"{workload}-history" / "history.html"
    for extension, text in history_page(workload, services).texts.items():
        write_whole(page.with_suffix(f".{extension}"), text.encode())
    return page


def _saved(workload: str | None, trial: str | None, out: Path) -> Path:
    """The newest report saved before, by its folder ``{workload}-{trial}``; else no file."""
    saved = {path: path.parent.name.rpartition("-") for path in out.glob("*/report.html")}
    asked_for = [
        path for path, (name, _, own) in saved.items()
        if workload in (None, name) and trial in (None, own)
    ]  # fmt: skip
    return max(asked_for, key=lambda path: saved[path][2], default=Path())


@on_cloud
def digest(
    invocation: Invocation,
    *,
    owner: Annotated[
        str | None, typer.Option("--owner", help="Only this owner's workloads.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Save all workloads as one page and print its path."
        ),
    ] = None,
) -> None:
    """Show every owner's weekly digest of the last 7 days.

    \b
    compilegate digest
    compilegate digest --owner ml-platform --json
    compilegate digest --html fleet.html

    With --html, saves a page instead: what was saved, how each workload stands, what to do. With
    --json as well, prints the path as JSON.
    """
    cloud = invocation.open_cloud()
    if html is not None:
        write_whole(html, render_fleet(fleet(cloud.services, owner=owner)).encode())
        invocation.answer({"html": str(html)}, "path", path=html)
        return
    sent = [one.notification for one in digests(cloud.services, owner=owner)]
    messages = [one.message.splitlines() for one in sent]
    invocation.answer([one.body() for one in sent], "digest", messages=messages)
