"""Which service answers a request: the one of the credential's scope, as on AWS.

ministack picks it by the X-Amz-Target header before the scope, for presigned URLs by the path, an
Action or the form in a body, and answers paths of its own whatever is signed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import router

from compilegate_localcloud.emulator.replacements import (
    replace,
    replace_everywhere,
    upstream,
)
from compilegate_localcloud.emulator.signatures import Incoming, RefusedError
from compilegate_localcloud.names import ADMIN_PATH, ADMIN_SERVICE

Decode = Callable[[bytes, dict[str, str]], bytes]
_DETECT = "ministack.core.router.detect_service"
_detect = router.detect_service
_TARGET = "x-amz-target"
_DECODE = "ministack.app._decode_aws_chunked_body"
_CHECKSUM = "x-amz-checksum-"
# What ministack answers before it looks for a service: health, reset, OAuth, catalogs, websites.
_SHORTCUTS = (
    "ministack.app._handle_pre_body_request",
    "ministack.app._handle_post_body_shortcuts",
    "ministack.app._handle_special_data_plane_request",
)


def install() -> None:
    """Let ministack route by the scope alone."""
    for shortcut in _SHORTCUTS:
        replace(shortcut, _no_answer)
    # It would read all of botocore's descriptions to answer that it lacks a service.
    replace("ministack.core.router._is_aws_service_name", lambda _scope_name: False)
    replace_everywhere(_DETECT, answering)
    replace(_DECODE, _trailers_of_checksums(upstream(_DECODE)))


def _trailers_of_checksums(original: Decode) -> Decode:
    """What ends a body in chunks is not signed: it gives the body's checksum, nothing else."""

    def decode(body: bytes, headers: dict[str, str]) -> bytes:
        signed = frozenset(headers)
        decoded = original(body, headers)
        for name in [name for name in headers if not name.startswith(_CHECKSUM)]:
            if name not in signed:
                del headers[name]
        return decoded

    return decode


async def _no_answer(*_: Any, **__: Any) -> None:
    """Leave the request to the service that it is signed for."""


def answering(method: str, path: str, headers: Mapping[str, str], query: Mapping[str, Any]) -> str:
    """The service that ministack lets answer; a presigned URL has its scope in the query."""
    if "authorization" not in headers:
        credential = router._credential_from_query(query)
        headers = {**headers, "authorization": f"Credential={credential}"}
    return str(_detect(method, path, dict(headers), dict(query)))


def check_scope(scope: str, request: Incoming, path: str) -> None:
    """Raise RefusedError where another service would answer than the one of the scope."""
    if path.startswith("/_"):  # of no AWS service: the emulator's own, and ministack's
        if not (path.startswith(ADMIN_PATH) and scope == ADMIN_SERVICE):
            raise RefusedError("AccessDenied", "The local cloud does not answer this path.")
        return
    headers, query = request.joined_headers(), request.parameters()
    service = answering(request.method, path, headers, query)
    signed = {**headers, _TARGET: "", "authorization": _credential(scope)}
    signed_for = answering(request.method, path, signed, query)
    patterns = router.SERVICE_PATTERNS.get(service, {})
    if _is_known(scope) and (service == signed_for or scope == patterns.get("credential_scope")):
        return
    raise _incorrect(scope, service, presigned="authorization" not in headers)


@functools.lru_cache(maxsize=256)
def _is_known(scope: str) -> bool:
    """Whether ministack knows a service of that name; S3 answers whatever it knows none for."""
    return scope == "s3" or answering("GET", "/", {"authorization": _credential(scope)}, {}) != "s3"


def _credential(scope: str) -> str:
    """What ministack reads of an Authorization header."""
    return f"Credential=-/-/-/{scope}/"


def _incorrect(scope: str, service: str, *, presigned: bool) -> RefusedError:
    if service != "s3":
        message = f"Credential should be scoped to correct service: '{service}'. "
        return RefusedError("SignatureDoesNotMatch", message)
    wrong = f'incorrect service "{scope}". This endpoint belongs to "s3".'
    if presigned:
        message = f"Error parsing the X-Amz-Credential parameter; {wrong}"
        return RefusedError("AuthorizationQueryParametersError", message, status=400)
    message = f"The authorization header is malformed; {wrong}"
    return RefusedError("AuthorizationHeaderMalformed", message, status=400)
