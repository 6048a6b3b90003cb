"""Requests to the local cloud with each kind of signature, as they are sent."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from compilegate_localcloud.names import ACCOUNT, HOST

LASTS_SECONDS = 60


@dataclass(frozen=True)
class Signed:
    """A request with its signature; ``path`` with the query."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class _Streamed(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """An upload in chunks, as SDKs send files whose length or checksum comes last."""

    def payload(self, _request: Any) -> str:
        return "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


class OddlyWritten(S3SigV4QueryAuth):  # type: ignore[misc]  # botocore has no types
    """A presigned URL whose credential stands under a name in another case."""

    def _modify_request_before_signing(self, request: Any) -> None:
        super()._modify_request_before_signing(request)
        request.url = request.url.replace("X-Amz-Credential=", "x-AMZ-credential=")


def send(state, method="GET", path="/", *, headers=None, body=None):
    """Status, headers and body of a request as it stands; nothing is added to it but the host."""
    connection = http.client.HTTPConnection(HOST, state.port, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def signed(state, service="s3", method="GET", path="/", *, body=b"", headers=None, secret=None):
    """The headers of a request with its signature."""
    credentials = Credentials(ACCOUNT, secret or state.secret)
    options = {"body": body, "headers": headers, "credentials": credentials}
    return claim(state, service, method, path, **options).headers


def claim(
    state, service="s3", method="GET", path="/", *,
    body=b"", headers=None, credentials=None, presigned=False, streamed=False, presigner=None,
):  # fmt: skip
    """A request that is signed by header, or ``presigned`` without its body.

    ``streamed`` ones are S3's, with a body in chunks.
    """
    request = AWSRequest(
        method=method, url=f"{state.endpoint}{path}", data=b"" if presigned else body,
        headers={"Host": f"{HOST}:{state.port}", **(headers or {})},
    )  # fmt: skip
    credentials = credentials or Credentials(ACCOUNT, state.secret)
    if presigned:
        query = presigner or (S3SigV4QueryAuth if service == "s3" else SigV4QueryAuth)
        signer = query(credentials, service, state.region, expires=LASTS_SECONDS)
    elif streamed:
        signer = _Streamed(credentials, service, state.region)
    else:
        signer = (S3SigV4Auth if service == "s3" else SigV4Auth)(credentials, service, state.region)
    signer.add_auth(request)
    parts = urlsplit(request.url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return Signed(method, target, dict(request.headers.items()), body)
