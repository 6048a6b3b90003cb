"""The demo's data: written by training's own script, beside the start of the cloud."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from compilegate.adapters.workload_files import FOLDER, SCRIPT
from compilegate.domain.errors import EnvironmentNotReadyError
from compilegate.localcloud.api import training_python

END_SECONDS = 5.0
TAIL_CHARACTERS = 1500


class DataPreparation:
    """The running script."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self._process, self._output = process, output

    def wait(self) -> None:
        """Wait for the data; EnvironmentNotReadyError quotes the script's last output."""
        if self._process.wait() != 0:
            self._output.seek(0)
            message = self._output.read().decode("utf-8", "replace")[-TAIL_CHARACTERS:]
            raise EnvironmentNotReadyError(f"{SCRIPT} did not write the demo's data:\n{message}")

    def end(self) -> None:
        """End it if it still runs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextmanager
def preparing_data(repository: Path) -> Iterator[DataPreparation]:
    """Start the script with training's Python; it never outlives the block."""
    command = [str(training_python()), str(SCRIPT), str(FOLDER)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - the argument list is fixed
            command, cwd=repository, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        preparation = DataPreparation(process, output)
        try:
            yield preparation
        finally:
            preparation.end()
