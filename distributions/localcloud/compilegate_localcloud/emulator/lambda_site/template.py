"""Starts Lambda workers quickly: a process that has imported the runtime's SDK, and forks.

Standard input is a socket from the emulator. Each message is a worker's request as JSON, together
with its three standard streams; the answer is its process id, or ``-`` where the worker needs an
interpreter of its own. The end of the socket ends this process, and by that its workers.

Workers of the app are forked from a fork of it, which has imported what all of its functions do:
one for each release, for the functions of a release are one bundle (bundles.py).
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import botocore.loaders
import botocore.session
from sitecustomize import end_with_parent  # type: ignore[import-not-found]

# Besides the SDK, what it imports for a first client and a first call.
_IMPORTED_AHEAD = ("boto3", "boto3.s3.inject", "botocore.handlers", "encodings.idna")
# What each function of the app imports before its own step, none of which reads its variables.
_OF_THE_APP = (
    "lambdas.handlers", "compilegate.adapters.sagemaker", "compilegate.adapters.state_machines",
    "compilegate.adapters.stores",
)  # fmt: skip
_SERVICES = ("s3", "dynamodb", "ssm", "sagemaker", "iam")  # that most of its functions call
_LONGEST_REQUEST = 1 << 20
_NOT_HERE = b"-"
_COMM_LENGTH = 15  # characters of a process's name, proc_pid_comm(5)


def main() -> None:
    """Serve until the emulator is gone."""
    sys.path.pop(0)  # this file's folder, which functions do not see
    for name in _IMPORTED_AHEAD:
        importlib.import_module(name)
    _read_descriptions()
    gc.freeze()  # children share these objects' memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the workers' ends are seen by the emulator
    _Template(socket.socket(fileno=0)).serve()


class _Template:
    """What is imported now, for requests from a socket; ``folder`` is the code that is among it."""

    def __init__(self, requests: socket.socket, folder: Path | None = None) -> None:
        self._requests, self._folder = requests, folder
        self._releases: dict[Path, socket.socket] = {}

    def serve(self) -> None:
        """Fork for every request until the socket ends."""
        while True:
            message, streams, _, _ = socket.recv_fds(self._requests, _LONGEST_REQUEST, 3)
            if not message:
                return
            self._requests.send(self._answer(message, streams))
            for stream in streams:
                os.close(stream)

    def _answer(self, message: bytes, streams: list[int]) -> bytes:
        """Start the worker, unless its code has modules of its own that are imported here."""
        request = json.loads(message)
        folder = Path(request["folder"]).resolve()
        try:
            if folder != self._folder:
                if any(path.stem in sys.modules for path in folder.iterdir()):
                    return _NOT_HERE
                if (folder / "lambdas" / "handlers.py").exists():
                    return self._of_release(folder, message, streams)
            pid = os.fork()
        except OSError:  # no memory, or too many processes
            return _NOT_HERE
        if pid == 0:
            self._close()
            _become(request, streams)
        return str(pid).encode()

    def _of_release(self, folder: Path, message: bytes, streams: list[int]) -> bytes:
        """What a fork answers that has imported the app; one that has ended is forgotten."""
        if folder not in self._releases:
            self._releases[folder], requests = socket.socketpair(
                socket.AF_UNIX, socket.SOCK_SEQPACKET
            )
            if os.fork() == 0:
                self._close()
                _serve_release(requests, folder)
            requests.close()
        release = self._releases[folder]
        try:
            socket.send_fds(release, [message], streams)
            answer = release.recv(_LONGEST_REQUEST)
        except OSError:
            answer = b""
        if not answer:
            self._releases.pop(folder).close()
        return answer or _NOT_HERE

    def _close(self) -> None:
        """Leave the sockets to the process that this one was forked from."""
        for connection in (self._requests, *self._releases.values()):
            connection.close()


def _serve_release(requests: socket.socket, folder: Path) -> NoReturn:
    """Serve the workers of a release. An import that fails is their own to report."""
    try:
        os.open(os.devnull, os.O_RDONLY)  # no worker's stream gets this number
        sys.path.insert(0, str(folder))
        for name in _OF_THE_APP:
            importlib.import_module(name)
        sys.path.pop(0)
        gc.freeze()
        _Template(requests, folder).serve()
    finally:
        os._exit(0)


def _read_descriptions() -> None:
    """Let the clients of workers find what botocore reads for the services that most of them call.

    A client is made for that, with invalid keys; no call is sent.
    """
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)
    session = botocore.session.get_session()
    for service in _SERVICES:
        session.create_client(
            service,
            region_name="us-east-1",
            aws_access_key_id="-",
            aws_secret_access_key="-",  # noqa: S106 - no secret
        )


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Run the request's program in this process, as an interpreter of its own would."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ.pop("PYTHONPATH", None)
    time.tzset()
    name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    Path("/proc/self/comm").write_text(name[-_COMM_LENGTH:], encoding="utf-8")
    end_with_parent()
    program = request["program"]
    sys.argv = [program]
    sys.path.insert(0, str(Path(program).parent))
    code = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        code = _status(ended.code)
    except BaseException:  # noqa: BLE001 - as the interpreter ends on what nothing catches
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _status(code: object) -> int:
    """The exit code that ``sys.exit`` was given; text goes to standard error, as Python has it."""
    if code is None or isinstance(code, int):
        return code or 0
    sys.stderr.write(f"{code}\n")
    return 1


if __name__ == "__main__":
    main()
