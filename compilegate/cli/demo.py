"""``compilegate demo``: three real workloads through the whole loop on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from compilegate import __version__
from compilegate.adapters.workload_files import FOLDER as DATA
from compilegate.adapters.workload_files import SCRIPT, WorkloadFile
from compilegate.cli.common.cloud import StartedCloud
from compilegate.cli.common.error_handling import FAILURE, STOPPED
from compilegate.cli.common.outcome import Outcome, read_outcome
from compilegate.cli.common.output import console
from compilegate.cli.common.session import REPORTS, JsonOption, Providers, ReportsOption, session
from compilegate.cli.common.template import answer
from compilegate.cli.run import (
    read_workloads,
    show_outcome,
    start,
    stop,
    watch,
)
from compilegate.cli.trials import TrialWatcher, View
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.formats import clock, plural
from compilegate.place import INSTALLED, PROJECT, work_folder

TAIL_CHARACTERS = 1500
# Waiting work for every core: the demo itself keeps two cores busy, so timings then spread.
BUSY_PER_CORE = 1.0
# An installed package is not written to: the demos run in a copy.
FOLDER = work_folder() / f"demo-{__version__}" if INSTALLED else PROJECT
WORKLOADS = FOLDER / "workloads"
DEMO_FILES = "demo-*.yaml"
EXPECTED = (
    "Expected on two free cores: a verdict at once, the next within a minute, the last within four."
)
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
]


def demo(
    ctx: typer.Context,
    *,
    workloads: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Another workload file; repeatable."),
    ] = None,
    keep: KeepOption = False,
    out: ReportsOption = REPORTS,
    as_json: JsonOption = False,
) -> None:
    """Run three real workloads end to end on this machine.

    Needs no AWS account, no Docker and no GPU.

    \b
    compilegate demo
    compilegate demo --keep        then: compilegate status --local
    compilegate demo --workloads workloads/my-job.yaml

    Starts the embedded cloud, deploys the app, trains for a few minutes, shows each verdict as it
    is reached, and then each outcome as `compilegate run` does.

    Exit code 0 when every trial reached a verdict, whatever it is, and has its report; otherwise 1.
    """
    progress, began = console(stderr=as_json), time.monotonic()
    put_in_place()
    paths = workloads or sorted(WORKLOADS.glob(DEMO_FILES))
    if not paths:
        raise EnvironmentNotReadyError(
            f"{WORKLOADS / DEMO_FILES} matches no file",
            fix="run the demo from a complete checkout, or name files with --workloads.",
        )
    with demo_cloud(session(ctx).providers, progress, keep=keep) as started:
        files = read_workloads(paths)
        ready = time.monotonic() - began
        simulated = started.cloud.services.settings.simulated
        names = ", ".join(file.workload.name for file in files)
        progress.print(f"Ready after {ready:.0f} s. Trials, all at once: {names}.")
        logs = "Logs of every part: compilegate local logs (in another terminal)"
        for line in filter(None, (simulated, logs, "" if workloads else EXPECTED)):
            progress.print(line)
        views, outcomes = _evaluate(files, started, out, progress)
    seconds = seconds_by_part(
        views, ready=ready, deploy=started.deploy_seconds, total=time.monotonic() - began
    )
    for outcome in () if as_json else outcomes:
        show_outcome(outcome)
    documents = [outcome.to_dict() for outcome in outcomes]
    document = {"outcomes": documents, "seconds": seconds, "simulated": simulated}
    answer(document, "demo", as_json=as_json, keep=keep)
    if any(outcome.exit_code == FAILURE for outcome in outcomes):
        raise typer.Exit(FAILURE)


def put_in_place() -> None:
    """Copy what the demos need, once."""
    if FOLDER.is_dir():
        return
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    # Made beside and renamed: another demo may begin now.
    with tempfile.TemporaryDirectory(dir=FOLDER.parent, prefix=".new-") as place:
        copy = Path(place) / FOLDER.name
        for name in ("training", "workloads"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, copy / name, ignore=ignored)
        with contextlib.suppress(OSError):
            copy.rename(FOLDER)


@contextmanager
def demo_cloud(providers: Providers, progress: Console, *, keep: bool) -> Iterator[StartedCloud]:
    """The embedded cloud; the demos' data are written while it starts."""
    from compilegate_localcloud.api import training_python  # noqa: PLC0415 - brings boto3

    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load >= BUSY_PER_CORE * cores:
        progress.print(
            f"This machine is busy (load {load:.1f} on {plural(cores, 'core')}): the demo takes "
            "longer, and timings may be too blurred to prove a speed-up.", style="yellow",
        )  # fmt: skip
    progress.print("Preparing the data, starting the embedded cloud, deploying the app …")
    command = [str(training_python()), str(SCRIPT), str(DATA)]
    with preparing_data(command) as wait, providers.started_local(keep=keep) as started:
        wait()
        yield started


@contextmanager
def preparing_data(command: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Start the command that writes the data; yields the function that waits for it.

    The function raises EnvironmentNotReadyError with the command's last output. The command never
    outlives the block.
    """
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(  # noqa: S603 - the argument list is fixed
            command, cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):

        def wait() -> None:
            if process.wait() != 0:
                output.seek(0)
                message = output.read().decode("utf-8", "replace")[-TAIL_CHARACTERS:]
                raise EnvironmentNotReadyError(
                    f"{SCRIPT} did not write the demo's data:\n{message}"
                )

        try:
            yield wait
        finally:
            process.kill()


def _evaluate(
    files: list[WorkloadFile], started_cloud: StartedCloud, out: Path, progress: Console
) -> tuple[list[View], list[Outcome]]:
    """Run the trials and show each verdict as it is reached."""
    cloud, began = started_cloud.cloud, time.monotonic()
    started: list[TrialWatcher] = []
    outcomes: dict[str, Outcome] = {}

    def show_verdict(view: View) -> None:
        outcome = read_outcome(view.trial, cloud, view.state, out)
        outcomes[outcome.workload] = outcome
        at, name = clock(time.monotonic() - began), (outcome.workload, "bold")
        progress.print(Text.assemble(f"{at:>6} ", name, f": {outcome.headline}"))

    try:
        started = start(files, cloud)
        views = watch(started, cloud.poll_seconds, progress, on_end=show_verdict)
    except KeyboardInterrupt:
        typer.echo("Stopping the trials and the embedded cloud …", err=True)
        if not started_cloud.started_now:
            stop(started, cloud)  # the cloud outlives this command, so its trials must be ended
        raise typer.Exit(STOPPED) from None
    return views, [outcomes[view.trial.workload] for view in views]


def seconds_by_part(
    views: Sequence[View], *, ready: float, deploy: float, total: float
) -> dict[str, float]:
    """Where the demo's wall clock went, ``ready`` after it began; ``overhead`` is not training.

    Training is the time in which any job trained; the loop is the rest of the trials.
    """
    spans = sorted(
        (job.started_at, job.ended_at)
        for view in views
        for job in view.jobs
        if job.started_at is not None and job.ended_at is not None
    )
    training, reached = 0.0, 0.0
    for began, ended in spans:
        training += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    parts = {
        "total": total,
        "setup": ready - deploy,
        "deploy": deploy,
        "training": training,
        "loop": max(total - ready - training, 0.0),
        "overhead": total - training,
    }
    return {name: round(seconds, 1) for name, seconds in parts.items()}
