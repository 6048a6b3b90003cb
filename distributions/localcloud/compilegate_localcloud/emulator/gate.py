"""What stands before the emulator: it lets in requests that are signed with a key of this run.

A page in a browser can send requests to this machine, other users of it too; neither knows a key.
A refusal looks as AWS's own would in the protocol of the service, with its status.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from xml.sax.saxutils import escape

from ministack.core.iam_actions import access_denied_response
from ministack.core.responses import fix_error_content_type

from compilegate_localcloud.emulator.scopes import answering, check_scope
from compilegate_localcloud.emulator.signatures import Incoming, RefusedError, admit, incoming
from compilegate_localcloud.names import HOST

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# What a request that was let in is signed for, as the applications behind the gate find it.
SIGNED_SERVICE = "compilegate.signed_service"
_POLICY_VIOLATION = 1008  # RFC 6455, section 7.4.1


class Gate:
    """An ASGI application around another one, reached at ``port`` of this machine."""

    def __init__(self, inner: Application, port: int) -> None:
        self._inner = inner
        self._hosts = (f"{HOST}:{port}", f"localhost:{port}")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        elif scope["type"] != "http":
            await self._inner(scope, receive, send)
        else:
            await self._answer(scope, receive, _without_cors(send))

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        request = incoming(scope)
        try:
            self._check_origin(request)
            admitted = await admit(request, lambda: read_body(receive))
            check_scope(admitted.scope, request, scope["path"])
        except RefusedError as refusal:
            await _refuse(request, scope["path"], refusal, send)
        except _DisconnectedError:
            return
        else:
            signed = {**scope, SIGNED_SERVICE: admitted.scope}
            await self._inner(signed, received_again(admitted.body, receive), send)

    def _check_origin(self, request: Incoming) -> None:
        """No page may use a key it got hold of; one can give its own name this machine's address.

        SDKs send no Origin.
        """
        if request.header("host") not in self._hosts or request.header("origin") is not None:
            raise RefusedError("AccessDenied", "Requests from web pages are refused.")


class _DisconnectedError(Exception):
    """The caller has gone."""


async def read_body(receive: Receive) -> bytes:
    """All of a request's body; raises where the caller goes before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _DisconnectedError
        parts.append(bytes(message.get("body", b"")))
        if not message.get("more_body"):
            return b"".join(parts)


def received_again(body: bytes, receive: Receive) -> Receive:
    """Hands the body on that has been read here."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return messages.pop() if messages else await receive()

    return receive_body


def _without_cors(send: Send) -> Send:
    """ministack lets every page read its answers."""

    async def send_without(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [
                (name, value)
                for name, value in message.get("headers", [])
                if not name.lower().startswith(b"access-control-")
            ]
            message = {**message, "headers": kept}
        await send(message)

    return send_without


async def _refuse(request: Incoming, path: str, refusal: RefusedError, send: Send) -> None:
    headers = request.joined_headers()
    service = refusal.service
    if service is None:
        service = answering(request.method, path, headers, request.parameters())
    else:
        headers.pop("x-amz-target", None)
    if service == "unknown_query":
        service = "sts"  # every service of the query protocol words it alike
    status, answer, body = access_denied_response(
        service, "", "", str(uuid.uuid4()),
        error_code=refusal.code, message=refusal.message, headers=headers,
    )  # fmt: skip
    if refusal.unsigned:
        names = f"<HeadersNotSigned>{escape(', '.join(refusal.unsigned))}</HeadersNotSigned>"
        body = body.replace(b"</Message>", b"</Message>" + names.encode(), 1)
    status = refusal.status or status
    fix_error_content_type(service, status, answer)
    wire = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    wire.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": wire})
    await send({"type": "http.response.body", "body": body})
