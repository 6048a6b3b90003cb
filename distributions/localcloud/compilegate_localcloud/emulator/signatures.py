"""Whether a request is signed with a key of this run, by AWS's Signature Version 4.

botocore's own signer computes each signature again from the request as it arrived; ministack knows
the secrets of the account, of roles' sessions and of users. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.utils import normalize_url_path
from ministack.core import iam_evaluator, responses
from ministack.core.sigv4 import decode_header_value

from compilegate_localcloud.names import ACCOUNT

# How far a clock may be off, and how long a presigned URL may hold:
# https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
SKEW = datetime.timedelta(minutes=15)
LONGEST_PRESIGNED_SECONDS = 604_800
# Bodies that S3 takes with a signature of the headers alone.
_UNSIGNED = "UNSIGNED-PAYLOAD"
_UNSIGNED_BODIES = (_UNSIGNED, "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^,\s]+), ?SignedHeaders=([^,\s]+), ?Signature=([0-9a-f]{64})"
)
_SCOPE = re.compile(r"([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request", re.ASCII)
_ALGORITHM = "X-Amz-Algorithm"
_QUERY = ("X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Signature", "X-Amz-Date")
_QUERY_SIGNATURE, _QUERY_EXPIRES = "X-Amz-Signature", "X-Amz-Expires"
_SESSION = "X-Amz-Security-Token"
_BODY_HASH = "x-amz-content-sha256"
_FORM = "multipart/form-data"

_NOT_SIGNED = "The request signature does not conform to AWS standards."


class RefusedError(Exception):
    """A request that is not let in; ``code`` as ministack names failures of authentication.

    ``status`` is set where AWS's own is not ministack's for the code; ``unsigned`` are headers that
    had to be signed, for ``service``.
    """

    def __init__(
        self, code: str, message: str = _NOT_SIGNED, *, status: int | None = None,
        service: str | None = None, unsigned: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.code, self.message, self.status = code, message, status
        self.service, self.unsigned = service, unsigned


@dataclass(frozen=True)
class Incoming:
    """A request as it arrived: ``path`` still encoded, names of ``headers`` in lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str | None:
        """The header's value; RefusedError where it was sent more than once."""
        return _only([value for key, value in self.headers if key == name])

    def parameter(self, name: str) -> str | None:
        """The query parameter's value; RefusedError where it was sent more than once."""
        return _only([value for key, value in self.query if key.lower() == name.lower()])

    def joined_headers(self) -> dict[str, str]:
        """The headers as ministack has them: the values of one that was sent twice in one."""
        joined: dict[str, str] = {}
        for name, value in self.headers:
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        return joined

    def parameters(self) -> dict[str, list[str]]:
        """The query's parameters, all values of each."""
        values: dict[str, list[str]] = {}
        for name, value in self.query:
            values.setdefault(name, []).append(value)
        return values


def _only(values: list[str]) -> str | None:
    if len(values) > 1:
        raise RefusedError("IncompleteSignature", "A part of the signature was sent twice.")
    return values[0] if values else None


def incoming(scope: Any) -> Incoming:
    """The request of an ASGI scope."""
    query = scope["query_string"].decode("latin-1")
    return Incoming(
        method=scope["method"],
        path=scope["raw_path"].decode("latin-1"),
        query=tuple(parse_qsl(query, keep_blank_values=True)),
        headers=tuple(
            (name.decode("latin-1").lower(), decode_header_value(value))
            for name, value in scope["headers"]
        ),
    )


@dataclass(frozen=True)
class _Claim:
    """What the request says of its own signature; ``lasts`` is how old it may be."""

    key: str
    date: str
    region: str
    service: str
    signed: frozenset[str]
    signature: str
    timestamp: str
    token: str | None
    presigned: bool
    lasts: datetime.timedelta = SKEW


@dataclass(frozen=True)
class Admitted:
    """A request whose signature holds: its body, and the service it is signed for."""

    body: bytes
    scope: str


async def admit(request: Incoming, read: Callable[[], Awaitable[bytes]]) -> Admitted:
    """A request whose signature holds; its body is read as late as possible.

    Raises RefusedError for every other request.
    """
    claim = _claim(request)
    _check_parts(claim, request)
    return Admitted(await _body(claim, request, read), claim.service)


async def _body(claim: _Claim, request: Incoming, read: Callable[[], Awaitable[bytes]]) -> bytes:
    _check_time(claim, datetime.datetime.now(datetime.UTC))
    secret = _secret(claim)
    declared = _declared_hash(claim, request)
    body = await read() if declared is None else b""
    _check_signature(claim, request, secret, declared or hashlib.sha256(body).hexdigest())
    if declared is None:
        return body
    body = await read()
    if declared not in _UNSIGNED_BODIES and declared != hashlib.sha256(body).hexdigest():
        raise RefusedError(
            "XAmzContentSHA256Mismatch" if claim.service == "s3" else "SignatureDoesNotMatch",
            f"The provided '{_BODY_HASH}' header does not match what was computed.",
        )
    return body


def _claim(request: Incoming) -> _Claim:
    authorization, algorithm = request.header("authorization"), request.parameter(_ALGORITHM)
    if authorization is None and algorithm is None:
        if request.parameter("AWSAccessKeyId") is not None:  # version 2
            raise RefusedError("UnsupportedSignature")
        raise RefusedError("MissingAuthenticationToken", "Missing Authentication Token")
    if authorization is not None and algorithm is not None:
        raise RefusedError("IncompleteSignature", "Both header and query carry a signature.")
    if not (authorization or algorithm or "").startswith("AWS4-HMAC-SHA256"):
        raise RefusedError("UnsupportedSignature")
    return _presigned(request) if authorization is None else _signed(request, authorization)


def _signed(request: Incoming, authorization: str) -> _Claim:
    match = _AUTHORIZATION.fullmatch(authorization)
    timestamp = request.header("x-amz-date")
    if match is None or timestamp is None:
        raise RefusedError(
            "IncompleteSignature",
            "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature', in this "
            "order, and existence of 'X-Amz-Date'.",
        )
    credential, signed, signature = match.groups()
    return _Claim(
        *_scope(credential), frozenset(signed.split(";")), signature, timestamp,
        token=request.header(_SESSION.lower()), presigned=False,
    )  # fmt: skip


def _presigned(request: Incoming) -> _Claim:
    values = [request.parameter(name) for name in (*_QUERY, _QUERY_EXPIRES)]
    credential, signed, signature, timestamp, expires = (value or "" for value in values)
    if not (credential and signed and signature and timestamp) or not re.fullmatch(
        r"[0-9]{1,6}", expires
    ):
        raise RefusedError(
            "IncompleteSignature",
            f"AWS query-string parameters must include {', '.join(_QUERY)} and {_QUERY_EXPIRES}.",
        )
    lasts = datetime.timedelta(seconds=min(int(expires), LONGEST_PRESIGNED_SECONDS))
    return _Claim(
        *_scope(credential), frozenset(signed.split(";")), signature, timestamp,
        token=request.parameter(_SESSION), presigned=True, lasts=lasts,
    )  # fmt: skip


def _scope(credential: str) -> tuple[str, str, str, str]:
    match = _SCOPE.fullmatch(credential)
    if match is None:
        raise RefusedError(
            "IncompleteSignature", "Credential must be keyid/date/region/service/aws4_request."
        )
    key, date, region, service = match.groups()
    return key, date, region, service


def _check_parts(claim: _Claim, request: Incoming) -> None:
    """Refuse what would choose another action than the one that is signed.

    The host, which tells this cloud from others, and every x-amz-* header must be signed; all but
    S3 sign a path as it is once its "." and ".." are followed, so it must have none.
    """
    amazon = {name for name, _ in request.headers if name.startswith("x-amz-")}
    unsigned = tuple(sorted(({"host"} | amazon) - claim.signed))
    if unsigned and claim.service == "s3":
        message = "There were headers present in the request which were not signed"
        raise RefusedError("AccessDenied", message, service="s3", unsigned=unsigned)
    if unsigned:
        message = f"'{unsigned[0].title()}' must be a 'SignedHeader' in the AWS Authorization."
        raise RefusedError("SignatureDoesNotMatch", message, service=claim.service)
    normal = claim.service == "s3" or request.path == normalize_url_path(request.path)
    if not (request.path.startswith("/") and normal):
        raise RefusedError("SignatureDoesNotMatch", service=claim.service)
    form = any(
        name == "content-type" and value.lower().startswith(_FORM)
        for name, value in request.headers
    )
    if form and request.method == "POST" and claim.service == "s3":
        # A form's own policy says which object may be written; neither header nor query does.
        raise RefusedError("UnsupportedSignature", service="s3")


def _check_time(claim: _Claim, now: datetime.datetime) -> None:
    try:
        signed_at = datetime.datetime.strptime(claim.timestamp, SIGV4_TIMESTAMP)
    except ValueError:
        raise RefusedError("IncompleteSignature", "X-Amz-Date is not a date.") from None
    if claim.date != claim.timestamp[:8]:
        raise RefusedError("CredentialDateMismatch", "The credential is of another date.")
    age = now - signed_at.replace(tzinfo=datetime.UTC)
    if not -SKEW <= age <= claim.lasts:
        raise RefusedError(
            "RequestExpired" if claim.presigned else "RequestTimeTooSkewed",
            f"Signature expired or not yet current: {claim.timestamp}, it is now "
            f"{now.strftime(SIGV4_TIMESTAMP)}.",
        )


def _secret(claim: _Claim) -> str:
    """The secret of the account's root, of a role's session or of a user."""
    try:
        owner = responses._account_from_sts_session(claim.key)
        owner = owner or iam_evaluator.find_iam_access_key_account(claim.key)
    except iam_evaluator.AmbiguousAccessKeyError:
        raise RefusedError(
            "InvalidClientTokenId", "The security token included in the request is invalid."
        ) from None
    account = owner or (claim.key if re.fullmatch(r"[0-9]{12}", claim.key) else ACCOUNT)
    credential = iam_evaluator.resolve_credential(claim.key, account, claim.token)
    if isinstance(credential, iam_evaluator.CredentialResolutionError):
        raise RefusedError(credential.code, credential.message)
    return str(credential.secret_access_key)


def _declared_hash(claim: _Claim, request: Incoming) -> str | None:
    """The hash of the body that the signature covers; None where it must be computed."""
    s3 = claim.service == "s3"
    if claim.presigned and s3:
        return _UNSIGNED
    declared = request.header(_BODY_HASH)
    if declared is None:
        return None
    if not re.fullmatch(r"[0-9a-f]{64}", declared) and not (s3 and declared in _UNSIGNED_BODIES):
        raise RefusedError(
            "UnsupportedSignature", f"The local cloud does not verify {_BODY_HASH}: {declared!r}."
        )
    return declared


def _check_signature(claim: _Claim, request: Incoming, secret: str, body_hash: str) -> None:
    signer = _Signer(claim, secret, body_hash)
    signed = AWSRequest(
        method=request.method,
        # A "#" is part of the path that is served; a URL would end there.
        url=f"http://{request.header('host')}{request.path.replace('#', '%23')}",
        params=[pair for pair in request.query if pair[0] != _QUERY_SIGNATURE],
    )
    for name, value in request.headers:
        if name in claim.signed:
            signed.headers[name] = value
    signed.context["timestamp"] = claim.timestamp
    canonical = signer.canonical_request(signed)
    expected = signer.signature(signer.string_to_sign(signed, canonical), signed)
    if not hmac.compare_digest(expected.encode(), claim.signature.encode()):
        raise RefusedError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check "
            "your AWS Secret Access Key and signing method.",
        )


class _Signer(SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """botocore's signer for a body whose hash is known; S3 alone signs its path as it is sent."""

    def __init__(self, claim: _Claim, secret: str, body_hash: str) -> None:
        super().__init__(Credentials(claim.key, secret), claim.service, claim.region)
        self._body_hash = body_hash

    def payload(self, _request: Any) -> str:
        """What stands for the body in the canonical request."""
        return self._body_hash

    def _normalize_url_path(self, path: str) -> str:
        return path if self._service_name == "s3" else str(super()._normalize_url_path(path))
