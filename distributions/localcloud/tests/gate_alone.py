"""The gate of the embedded cloud before an application that says what it was let to do.

Run in the emulator's environment, with the port to listen on; the secret key comes by the
environment, as in the emulator.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack import app  # noqa: F401  # changes hypercorn's answers to malformed requests

from compilegate_localcloud.emulator import scopes
from compilegate_localcloud.emulator.__main__ import bind_free_port
from compilegate_localcloud.emulator.gate import Gate, read_body


async def acting(scope: Any, receive: Any, send: Any) -> None:
    """Answers 200 with the length of the body."""
    if scope["type"] != "http":
        raise RuntimeError(f"let in: {scope['type']}")
    answer = json.dumps({"acted": len(await read_body(receive))}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def main() -> None:
    """Serve until the caller closes standard input."""
    scopes.install()
    listener = bind_free_port()
    port = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.graceful_timeout = 0.1
    config.loglevel = "WARNING"
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    async def until_closed() -> None:
        await asyncio.to_thread(sys.stdin.read)

    gate = Gate(acting, port)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # without start and stop
            raise NotImplementedError
        await gate(scope, receive, send)

    asyncio.run(serve(application, config, shutdown_trigger=until_closed))
    os._exit(0)


if __name__ == "__main__":
    main()
