"""``compilegate report``: fetch a trial's report, or render it again from its records."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from compilegate.adapters.workload_files import write_whole
from compilegate.cli.common.cloud import Cloud
from compilegate.cli.common.outcome import newest_decision, save_report
from compilegate.cli.common.session import (
    REPORTS,
    Invocation,
    ReportsOption,
    on_cloud,
    workload_names,
)
from compilegate.domain.errors import (
    EnvironmentNotReadyError,
    InvalidInputError,
    NotFoundError,
    ProblemWithFix,
)
from compilegate.ports import Services
from compilegate.usecases.production.announce_review import bodies, history_page
from compilegate.usecases.records import Trial


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
    try:
        cloud = invocation.open_records()
    except EnvironmentNotReadyError:
        saved = (
            _history_file(str(workload), out) if workload_history
            else _saved(workload, trial, out)
        )  # fmt: skip
        if not invocation.local or saved is None or not saved.is_file():
            raise
        typer.echo("The local cloud does not run; this report was saved before.", err=True)
        path = saved
    else:
        if workload_history:
            path = save_history(str(workload), cloud.services, out)
        else:
            path = save_report(_newest(cloud, workload, trial), cloud.services, out)
    if open_it and not webbrowser.open(path.resolve().as_uri()):
        raise EnvironmentNotReadyError(
            ProblemWithFix("No browser could be opened", fix=f"open {path} yourself.")
        )
    invocation.answer(page_files(path), "path", path=path)


def page_files(page: Path) -> dict[str, str]:
    """A saved page's files by format."""
    suffixes = {"html": ".html", "markdown": ".md", "json": ".json"}
    return {name: str(page.with_suffix(suffix)) for name, suffix in suffixes.items()}


def save_history(workload: str, services: Services, out: Path) -> Path:
    """Render the history as of now and save its files; raises NotFoundError without any."""
    page = _history_file(workload, out)
    files = bodies(history_page(workload, services))
    for extension, body in files.items():
        write_whole(page.with_suffix(f".{extension}"), body)
    return page


def _history_file(workload: str, out: Path) -> Path:
    return out / f"{workload}-story" / "story.html"


def _newest(cloud: Cloud, workload: str | None, trial: str | None) -> Trial:
    workloads = [workload] if workload else cloud.overview.workloads()
    newest = newest_decision(workloads, trial, cloud)
    if newest is None:
        what = " ".join(part for part in (workload, trial and f"trial {trial}") if part)
        raise NotFoundError(
            ProblemWithFix(
                f"there is no decision{f' of {what}' if what else ''} yet",
                fix="list the trials with `compilegate status`",
            )
        )
    return newest[0]


def _saved(workload: str | None, trial: str | None, out: Path) -> Path | None:
    """The newest report saved before; a folder's name is ``{workload}-{trial}``."""
    reports = out.glob("*/report.html")
    for path in sorted(reports, key=lambda path: path.parent.name.rpartition("-")[2], reverse=True):
        name, _, saved_trial = path.parent.name.rpartition("-")
        if workload in (None, name) and trial in (None, saved_trial):
            return path
    return None
