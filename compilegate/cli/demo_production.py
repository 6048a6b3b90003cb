"""``compilegate demo-production``: a month of production in minutes, a fault and its revert."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from compilegate.cli.cloud import Cloud, StartedCloud
from compilegate.cli.demo_data import preparing_data
from compilegate.cli.demo_production_nights import (
    EVERY_MILLISECONDS,
    FAULT,
    Month,
    Nights,
    night_document,
)
from compilegate.cli.demo_production_screen import Lines, show_end
from compilegate.cli.doors import Doors
from compilegate.cli.options import REPORTS, JsonOption, ReportsOption
from compilegate.cli.output import console, emit_json, say
from compilegate.cli.project import REPOSITORY
from compilegate.cli.shell import FAILURE, STOPPED, session
from compilegate.cli.story import save_story
from compilegate.cli.trials import read_workloads, stop
from compilegate.domain.production.fault import VARIABLE
from compilegate.usecases.production.watch_production import watch_production

FILE = REPOSITORY / "workloads" / "nightly-lm.yaml"
NIGHTS_APART = EVERY_MILLISECONDS // (24 * 3600 * 1000)
STOP_CAUSE = "stopped with Ctrl-C"


def demo_production(
    ctx: typer.Context,
    *,
    workload: Annotated[
        Path, typer.Option(metavar="FILE", help="Another workload file.", show_default=False)
    ] = FILE,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
    ] = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Live through a month of production on this machine: promotion, fault, revert.

    No AWS account, no Docker, no GPU.

    \b
    compilegate demo-production
    compilegate demo-production --keep
    compilegate flag history lm-nightly --local

    Real jobs are trained one after another, each for another night. A trial turns the compiler
    on, a fault is put into the compiled arm on purpose, and production finds it and turns the
    compiler off by itself. Exit code 0 when it came to that, 1 when it came otherwise.
    """
    progress = console(stderr=as_json)
    found = _run(session(ctx).doors, workload, out, keep=keep, progress=progress)
    if as_json:
        emit_json(found.to_dict())
    else:
        show_end(found.month, found.message, found.story, found.simulated)
        say(f"Took {found.seconds / 60:.0f} min.")
        if keep:
            say("The local cloud goes on; end it with: compilegate local down")
    if found.month.wrong is not None:
        raise typer.Exit(FAILURE)


class _Ended:
    """The month with what is shown of it."""

    def __init__(self, nights: Nights, cloud: Cloud, out: Path, began: float) -> None:
        self.month: Month = nights.month
        self.message = _message(nights, cloud)
        self.story = save_story(nights.workload, cloud.services, out)
        self.simulated = simulated(cloud)
        self.seconds = time.monotonic() - began

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        outcome, page = self.month.outcome, self.story
        return {
            "went_as_told": self.month.wrong is None,
            "wrong": self.month.wrong,
            "trial": None if outcome is None else outcome.to_dict(),
            "nights": [night_document(night) for night in self.month.nights],
            "notification": self.message,
            "story": {
                "html": str(page),
                "markdown": str(page.with_suffix(".md")),
                "json": str(page.with_suffix(".json")),
            },
            "simulated": self.simulated,
            "seconds": round(self.seconds, 1),
        }


def simulated(cloud: Cloud) -> list[str]:
    """What is not the real thing, in a sentence each."""
    own = cloud.services.settings.simulated
    return [
        *([own] if own else []),
        f"the clock. Runs start one after another and stand for nights {NIGHTS_APART} days apart.",
        f"the fault. {VARIABLE}={FAULT} lets the compiled arm train with a fifth of its learning "
        "rate; the training, its losses and every verdict are real.",
    ]


def _run(doors: Doors, workload: Path, out: Path, *, keep: bool, progress: Console) -> _Ended:
    began = time.monotonic()
    lines = Lines(progress)
    progress.print("Preparing the data, starting the embedded cloud, deploying the app …")
    with preparing_data(REPOSITORY) as data, doors.started_local(keep=keep) as started:
        data.wait()
        (file,) = read_workloads([workload])
        lines.step(f"Ready after {time.monotonic() - began:.0f} s. Simulated here:")
        for text in simulated(started.cloud):
            progress.print(f"- {text}")
        # Off a terminal a line a night is enough.
        live = progress if progress.is_terminal else Console(quiet=True)
        nights = Nights(file, started.cloud, teller=lines, live=live, reports=out)
        try:
            nights.live_through()
        except KeyboardInterrupt:
            _stop(nights, started)
            raise typer.Exit(STOPPED) from None
        return _Ended(nights, started.cloud, out, began)


def _stop(nights: Nights, started: StartedCloud) -> None:
    typer.echo("Stopping the demo and the embedded cloud …", err=True)
    if not started.started_now:  # the cloud outlives this command, so what it runs must be ended
        stop(nights.trials, started.cloud)
        with contextlib.suppress(BotoCoreError, ClientError, OSError):
            nights.stop(STOP_CAUSE)


def _message(nights: Nights, cloud: Cloud) -> dict[str, Any] | None:
    """What was told of the last change of the flag; asking again changes nothing."""
    changed = [n for n in nights.month.nights if (n.view.watched or {}).get("change")]
    if not changed:
        return None
    event = {"workload": nights.workload, "run": changed[-1].view.trial.trial}
    told = watch_production(event, services=cloud.services)
    return {key: told[key] for key in ("subject", "message") if key in told} or None
