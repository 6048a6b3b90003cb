"""Holds the rates and quotas that AWS publishes, where a test asks for it: ``--hold-rates``."""

from __future__ import annotations

import time
import uuid
from urllib.parse import parse_qs

from ministack.core.iam_actions import access_denied_response

from compilegate_localcloud.emulator.gate import (
    SIGNED_SERVICE,
    Application,
    Message,
    Receive,
    Send,
    read_body,
    received_again,
)
from compilegate_localcloud.emulator.limits import Limits, Refusal


class PublishedRates:
    """An ASGI application around another one: what is one too many does not reach it."""

    def __init__(self, inner: Application) -> None:
        self._inner, self._limits = inner, Limits(time.monotonic, _used)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        body = await read_body(receive)
        service = str(scope.get(SIGNED_SERVICE, ""))
        headers = {name.decode().lower(): text.decode("latin-1") for name, text in scope["headers"]}
        operation = headers.get("x-amz-target", "").rpartition(".")[2]
        if service == "iam":
            operation = parse_qs(body.decode("latin-1")).get("Action", [""])[0]
        refusal = self._limits.refusal(service, operation, body)
        if refusal is not None:
            await _refuse(service, refusal, headers, send)
        else:
            await self._inner(scope, received_again(body, receive), send)


def _used(kind: str) -> int:
    from ministack.services import iam, ssm  # noqa: PLC0415 - read the environment when imported

    return len(iam._roles) if kind == "roles" else len(ssm._parameters)


async def _refuse(service: str, refusal: Refusal, headers: dict[str, str], send: Send) -> None:
    _, answer, body = access_denied_response(
        service, "", "", str(uuid.uuid4()),
        error_code=refusal.code, message=refusal.message, headers=headers,
    )  # fmt: skip
    wire = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    wire.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": wire})
    await send({"type": "http.response.body", "body": body})
