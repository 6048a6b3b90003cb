"""Entry point: ``python -m compilegate_localcloud.emulator --home DIR ...``."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile

from compilegate_localcloud.emulator.settings import (
    RUN_VARIABLE,
    Settings,
    give_up,
    parse_arguments,
)
from compilegate_localcloud.names import ACCOUNT, HOST

_SECRET_BYTES = 30  # 40 characters, as long as a secret key of AWS


def bind_free_port() -> socket.socket:
    """A listening socket on a port that the operating system picks."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, 0))
    listener.listen(128)
    return listener


def prepare_process(settings: Settings, port: int) -> None:
    """Set what the emulator's libraries read from the environment when they are imported."""
    for folder in (settings.temporary, settings.jobs, settings.logs):
        folder.mkdir(parents=True, exist_ok=True)
    # Lambda workers inherit the environment and must not see the repository through it.
    os.environ.pop("PYTHONPATH", None)
    os.environ.update(
        {
            RUN_VARIABLE: settings.run_id,
            "GATEWAY_PORT": str(port),
            "MINISTACK_HOST": HOST,
            "MINISTACK_REGION": settings.region,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "AUTH": "true" if settings.enforce_iam else "false",
            "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            # Of this run alone: whoever knows it may do everything.
            "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(_SECRET_BYTES),
            "AWS_DEFAULT_REGION": settings.region,
            "AWS_REGION": settings.region,
            "TMPDIR": str(settings.temporary),
            # Where ministack puts the code of functions when it is asked for its state.
            "STATE_DIR": str(settings.journal),
            # No Docker, ever: it would reap containers of the user's other emulators.
            "DOCKER_HOST": f"unix://{settings.temporary}/no-docker.sock",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "LAMBDA_EXECUTOR": "local",
        }
    )
    tempfile.tempdir = str(settings.temporary)


def main() -> None:
    """Serve until stopped, or, attached, until nobody uses it any more."""
    settings = parse_arguments(sys.argv[1:])
    try:
        listener = bind_free_port()
    except OSError as error:
        give_up(f"listen on {HOST}", error)
    try:
        prepare_process(settings, listener.getsockname()[1])
    except OSError as error:
        give_up(f"write to {settings.home}", error)
    # Imported now: the libraries behind it read the environment prepared above.
    from compilegate_localcloud.emulator.server import serve  # noqa: PLC0415

    serve(settings, listener)


if __name__ == "__main__":
    main()
