"""Starts a speed job's segments under MPI, each by an mpirun of its own.

A process that mpirun started can join MPI once, its children included: Open MPI 4.1 refuses the
second segment of a script that calls MPI_Init. So the first process starts every segment with the
command and the variables with which the container toolkit started mpirun for the job, and the other
processes wait for it. A process that dies takes its segment with it on every host.
"""

import contextlib
import json
import os
import socket
import time
from pathlib import Path

from compilegate_runtime.errors import TrainingError
from compilegate_runtime.segments import DEFAULT_PORT

STARTERS = ("mpirun", "mpiexec", "orterun", "prterun")  # also as mpirun.real, behind a wrapper
MEET_SECONDS = 600  # hosts start at different times; the toolkit itself waits longer


def started_by_mpi(variables):
    """Whether mpirun started several processes, of which this is one."""
    return int(variables.get("OMPI_COMM_WORLD_SIZE") or 1) > 1


class Mpirun:
    """The mpirun that started this process: its command up to ``program``, its variables."""

    def __init__(self, program):
        """Raises TrainingError if no mpirun with that program is among the process's parents."""
        self.words, self.variables = _starter_of(program)

    def command(self, program, arguments, exported):
        """What starts ``program`` as the job's processes were; it takes ``exported`` along."""
        names = [word for name in sorted(exported) for word in ("-x", name)]
        return [self.words[0], *names, *self.words[1:], program, *arguments]


@contextlib.contextmanager
def first_process(count):
    """Let the other processes of the job wait until the block ends.

    Raises TrainingError when not all of them have come after ``MEET_SECONDS``.
    """
    with socket.socket() as listener, contextlib.ExitStack() as others:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", _meeting_port()))
        listener.listen(count)
        listener.settimeout(MEET_SECONDS)
        for arrived in range(1, count):
            try:
                others.enter_context(listener.accept()[0])
            except socket.timeout:
                raise TrainingError(
                    f"{arrived} of {count} processes of the speed job started within "
                    f"{MEET_SECONDS} s"
                ) from None
        yield


def wait_for_first_process():
    """Return when the first process's segments are over, however they ended.

    Raises TrainingError when the first process cannot be reached.
    """
    host = os.environ.get("MASTER_ADDR") or json.loads(os.environ["SM_HOSTS"])[0]
    place = (host, _meeting_port())
    deadline = time.monotonic() + MEET_SECONDS
    while True:
        try:
            with socket.create_connection(place, timeout=5) as first:
                first.settimeout(None)
                with contextlib.suppress(OSError):  # mpirun ends the job if the first one died
                    first.recv(1)
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise TrainingError(f"the job's first process at {place}: {error}") from error
            time.sleep(1)


def _meeting_port():
    """The job's own port; its segments have later ones (``segments.rendezvous``)."""
    return int(os.environ.get("MASTER_PORT") or DEFAULT_PORT)


def _starter_of(program):
    process = os.getppid()
    while process > 1 and (Path("/proc") / str(process)).is_dir():
        folder = Path("/proc") / str(process)
        words = _texts(folder / "cmdline")
        at = next((i for i, word in enumerate(words) if word.endswith(program)), None)
        if at and Path(words[0]).name.split(".")[0] in STARTERS:
            pairs = (text.partition("=") for text in _texts(folder / "environ"))
            return words[:at], {name: value for name, _, value in pairs if name}
        process = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    raise TrainingError(
        "the job's processes were started by MPI, but not by an mpirun that runs beside the first "
        "of them, so its segments cannot be started alike; use another training.distribution"
    )


def _texts(path):
    return path.read_bytes().decode(errors="replace").split("\0")[:-1]
