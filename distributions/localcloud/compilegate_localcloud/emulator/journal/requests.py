"""Holds the answers of requests that change something until that lies on disk."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import parse_qs

from ministack import app

from compilegate_localcloud.emulator.gate import (
    Application,
    Message,
    Receive,
    Send,
    read_body,
    received_again,
)
from compilegate_localcloud.emulator.journal.changing import FORM, changes
from compilegate_localcloud.emulator.journal.recorder import Recorder
from compilegate_localcloud.emulator.journal.states import loaded_services

_SCOPE = re.compile(r"/([a-z0-9-]+)/aws4_request")
SAGEMAKER, CLOUDFORMATION = "sagemaker", "cloudformation"


class Recording:
    """An ASGI application around another one, whose changes it writes."""

    def __init__(self, inner: Application, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        service = _service(headers, scope["query_string"].decode("latin-1"))
        body = b""
        if headers.get("content-type", "").startswith(FORM):
            body = await read_body(receive)
            receive = received_again(body, receive)
        if not changes(service, scope["method"], scope["path"], headers, body):
            await self._inner(scope, receive, send)
            return
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self._inner(scope, receive, hold)
        self._recorder.note(*_states(service))
        await asyncio.to_thread(self._recorder.flush)
        for message in held:
            await send(message)


def _service(headers: dict[str, str], query: str) -> str:
    """The service that the signature names; empty where it names none."""
    credential = headers.get("authorization") or parse_qs(query).get("X-Amz-Credential", [""])[0]
    match = _SCOPE.search(credential)
    return match.group(1) if match else ""


def _states(service: str) -> list[str]:
    """The states that a request to the service may have changed, all for a deployment."""
    if service == SAGEMAKER:
        return []  # it writes each job itself
    config: dict[str, Any] | None = app.SERVICE_REGISTRY.get(
        app.SERVICE_NAME_ALIASES.get(service, service)
    )
    if config is None or service == CLOUDFORMATION:
        return list(loaded_services())
    return [str(config.get("state_key", config["module"]))]
