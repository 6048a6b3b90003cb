"""What both demos begin with: workloads where they may be written, their data, and a cloud."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from compilegate import __version__
from compilegate.adapters.workload_files import FOLDER as DATA
from compilegate.adapters.workload_files import SCRIPT
from compilegate.cli.common.cloud import StartedCloud
from compilegate.cli.common.session import Providers
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.formats import plural
from compilegate.place import INSTALLED, PROJECT, work_folder

END_SECONDS = 5.0
TAIL_CHARACTERS = 1500
# Waiting work for every core: the demo itself keeps two cores busy, so timings then spread.
BUSY_PER_CORE = 1.0
# An installed package is not written to: the demos run in a copy.
FOLDER = work_folder() / f"demo-{__version__}" if INSTALLED else PROJECT
WORKLOADS = FOLDER / "workloads"
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave the embedded cloud running afterwards.")
]


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
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - the argument list is fixed
            command, cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip

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
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
