"""The emulator's own paths, ``/_compilegate/...``: health, and failures for tests."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from compilegate.localcloud.emulator.engine.loader import Loader
from compilegate.localcloud.emulator.sagemaker.service import TrainingService
from compilegate.localcloud.emulator.settings import Settings
from compilegate.localcloud.names import ADMIN_PATH, HOST

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

_NEEDS_LOADER = re.compile(rb"/(cloudformation|states)/aws4_request")


class AdminApi:
    """Answers the emulator's own paths and lets everything else through to the AWS emulator."""

    def __init__(
        self, inner: Application, settings: Settings, service: TrainingService, loader: Loader
    ) -> None:
        self._inner, self._settings = inner, settings
        self._service, self._loader = service, loader

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
        elif not _from_this_machine(scope):
            await _answer(send, 403, {"error": "requests from web pages are refused"})
        elif scope["path"].startswith(ADMIN_PATH):
            status, document = self._respond(
                scope["method"], scope["path"].removeprefix(ADMIN_PATH), await _body(receive)
            )
            await _answer(send, status, document)
        else:
            if any(_NEEDS_LOADER.search(value) for _, value in scope["headers"]):
                await asyncio.to_thread(self._loader.wait)
            await self._inner(scope, receive, send)

    def _respond(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if path == "health":
            return 200, {"run_id": self._settings.run_id}
        if path == "failures" and not self._settings.inject_failures:
            return 403, {"error": "the local cloud was not started with failure injection"}
        if path == "failures" and method == "GET":
            return 200, {"left": self._service.failures.left()}
        if path == "failures" and method == "POST":
            return self._inject(json.loads(body))
        return 404, {"error": f"no such path: {path}"}

    def _inject(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "kill_job" in request:
            killed = self._service.kill(str(request["kill_job"]))
            return (200 if killed else 404), {"killed": killed}
        if "quotas" in request:
            self._service.quotas.set({str(k): int(n) for k, n in request["quotas"].items()})
            return 200, {}
        try:
            self._service.failures.add(str(request["kind"]), int(request["count"]))
        except (KeyError, ValueError) as error:
            return 400, {"error": str(error)}
        return 200, {"left": self._service.failures.left()}


def _from_this_machine(scope: Message) -> bool:
    """No page in a browser may reach the emulator: it runs code, and it trusts its callers.

    SDKs send no Origin; a page that resolves its own name to this machine sends another Host.
    """
    headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
    host = headers.get("host", b"").decode("latin-1").rsplit(":", 1)[0]
    return "origin" not in headers and (host in (HOST, "localhost") or host.endswith(f".{HOST}"))


async def _body(receive: Receive) -> bytes:
    parts = b""
    while True:
        message = await receive()
        parts += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return parts


async def _answer(send: Send, status: int, document: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(document).encode()})
