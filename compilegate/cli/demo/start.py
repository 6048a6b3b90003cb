"""Starts what both demos need: their data, written by training's own script, and a cloud."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from compilegate.adapters.workload_files import FOLDER, SCRIPT
from compilegate.cli.common.cloud import StartedCloud
from compilegate.cli.common.session import Providers
from compilegate.cli.demo import files
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.domain.formats import plural

END_SECONDS = 5.0
TAIL_CHARACTERS = 1500
# Waiting work for every core: the demo itself keeps two cores busy, so timings then spread.
BUSY_PER_CORE = 1.0


def busy_words(load: float, cores: int) -> str | None:
    """What a load (processes that run or wait, of the last minute) does to the demo's verdicts."""
    if load < BUSY_PER_CORE * cores:
        return None
    return (
        f"This machine is busy (load {load:.1f} on {plural(cores, 'core')}): the demo takes "
        "longer, and timings may be too blurred to prove a speed-up."
    )


def warn_if_busy(progress: Console) -> None:
    """Say before a demo begins what other work on this machine does to its verdicts."""
    words = busy_words(os.getloadavg()[0], os.cpu_count() or 1)
    if words is not None:
        progress.print(words, style="yellow")


@contextmanager
def demo_cloud(providers: Providers, progress: Console, *, keep: bool) -> Iterator[StartedCloud]:
    """The embedded cloud; the demos' data are written while it starts."""
    from compilegate_localcloud.api import training_python  # noqa: PLC0415 - brings boto3

    warn_if_busy(progress)
    progress.print("Preparing the data, starting the embedded cloud, deploying the app …")
    command = [str(training_python()), str(SCRIPT), str(FOLDER)]
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
            command, cwd=files.FOLDER, stdin=subprocess.DEVNULL, stdout=output,
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
