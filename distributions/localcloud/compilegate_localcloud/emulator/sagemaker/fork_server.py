"""Starts container toolkits quickly: a process that has imported what they import, and forks.

The toolkit imports an S3 client, an SSH client and PyTorch before it starts the script, seconds
for every job. In a container that happens once; here every job of a trial would pay for it on
one machine. A forked process runs the same ``train`` from its first line on.

Run by the jobs' own Python, standard library only apart from what it imports ahead. Its standard
input is a socket from the emulator; each message brings a job's connection, and the end of it
ends this process. A job's connection carries the request as a line of JSON together with the
job's output, and answers with two lines: the process's id, and its exit status.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

# What sagemaker-training and sagemaker-pytorch-training import. Not the toolkit itself: it reads
# its environment when it is imported.
_IMPORTED_AHEAD = (
    "asyncio", "boto3", "boto3.s3.transfer", "inotify_simple", "paramiko", "psutil", "retrying",
    "s3transfer.manager", "six.moves.urllib.parse", "torch",
)  # fmt: skip
_LONGEST_REQUEST = 1 << 20


def main() -> None:
    """Serve until the emulator is gone."""
    import supervisor  # type: ignore[import-not-found] # noqa: PLC0415 - the file beside this one

    sys.path.pop(0)  # their folder, which a job should not see
    del sys.modules["supervisor"]
    for name in _IMPORTED_AHEAD:
        with contextlib.suppress(ImportError):  # an older toolkit, or jobs without PyTorch
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        _make_session()
    gc.freeze()  # children share these objects' memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the server does not wait for its children
    with socket.socket(fileno=0) as jobs:
        while True:
            message, descriptors, _, _ = socket.recv_fds(jobs, 1, 1)
            if not message:
                return
            if os.fork() == 0:
                jobs.close()
                # Standard input, whose number is free now; without this the script gets none.
                os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.setsid()  # not to be killed with the server: what the job leaves is its child
                supervisor.adopt_orphans()
                _serve(socket.socket(fileno=descriptors[0]), supervisor.kill_children)
            os.close(descriptors[0])


def _make_session() -> None:
    """Leave to the jobs a session of boto3 that has read what the toolkit's client of S3 needs.

    It asks the environment for keys, region and endpoint when a client is made. This client
    has invalid keys, and no call is sent.
    """
    import boto3  # noqa: PLC0415 - the jobs' Python may have none

    invalid = {"aws_access_key_id": "-", "aws_secret_access_key": "-"}
    boto3.resource("s3", region_name="us-east-1", **invalid)


def _serve(connection: socket.socket, clear: Callable[[], None]) -> NoReturn:
    """Start one job's toolkit and answer how it ended, once nothing of it is left."""
    request, output = _received(connection)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(request, output)
    os.close(output)
    with contextlib.suppress(OSError):  # the supervisor may be gone
        connection.sendall(f"{pid}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    clear()
    with contextlib.suppress(OSError):
        connection.sendall(f"{code if code >= 0 else 128 - code}\n".encode())
    os._exit(0)


def _received(connection: socket.socket) -> tuple[dict[str, Any], int]:
    text, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, 1)
    while not text.endswith(b"\n"):
        more = connection.recv(_LONGEST_REQUEST)
        if not more:
            os._exit(1)
        text += more
    request: dict[str, Any] = json.loads(text)
    return request, descriptors[0]


def _become(request: dict[str, Any], output: int) -> NoReturn:
    """Run the request's command in this process: an interpreter of the job's own, a program."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    interpreter, program = request["command"]
    own = request["packages"]
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    import_path = [os.path.dirname(program), *filter(None, inherited)]  # noqa: PTH120 — as Python
    place = next((at for at, path in enumerate(sys.path) if path.endswith("-packages")), 0)
    sys.path[:] = [*import_path, *sys.path[:place], own, *sys.path[place:]]
    sys.executable, sys.argv = interpreter, [program]
    code: object = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 — as the interpreter ends on what nothing catches
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
