"""Starts Lambda workers quickly: a process that has imported the runtime's SDK, and forks.

Standard input is a socket from the emulator. Each message is a worker's request as JSON, together
with its three standard streams; the answer is its process id, or ``-`` where the worker needs an
interpreter of its own. The end of the socket ends this process, and by that its workers.
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
    with socket.socket(fileno=0) as requests:
        while True:
            message, streams, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 3)
            if not message:
                return
            requests.send(_answer(json.loads(message), streams, requests))
            for stream in streams:
                os.close(stream)


def _answer(request: dict[str, Any], streams: list[int], requests: socket.socket) -> bytes:
    """Start the worker, unless its code has modules of its own that are imported here already."""
    if any(path.stem in sys.modules for path in Path(request["folder"]).iterdir()):
        return _NOT_HERE
    try:
        pid = os.fork()
    except OSError:  # no memory, or too many processes
        return _NOT_HERE
    if pid == 0:
        requests.close()
        _become(request, streams)
    return str(pid).encode()


def _read_descriptions() -> None:
    """Let the clients of workers find what botocore reads for the services that most of them call.

    A client is made for that, with invalid keys; no call is sent.
    """
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)
    session = botocore.session.get_session()
    for service in ("s3", "dynamodb"):
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
