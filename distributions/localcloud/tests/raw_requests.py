"""HTTP requests as bytes: malformed ones by chance, signed ones that were changed."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.utils import normalize_url_path

from compilegate_localcloud.names import ACCOUNT, HOST

CORPUS = Path(__file__).with_name("corpus")
# Longer than any answer may take; a connection that is neither answered nor closed hangs.
LONGEST_SECONDS = 2.0
# After an answer, for another one to a request that was hidden in the first.
MORE_SECONDS = 0.003
METHODS = (
    "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PRI", "",
)  # fmt: skip
PARTS = (
    "method", "path", "query", "body", "date", "signature", "scope", "host", "header", "fragment",
)  # fmt: skip
TARGETS = (
    "/", "/bucket/key", "/?Action=CreateStack&StackName=x", "/_compilegate/health",
    "/_ministack/reset", "/_ministack/rds/iam-auth", "/health", "*", "//", "/../..", "/%00", "/%",
    "/%ff%fe", "/?%zz=%ff", "/?X-Amz-Algorithm=AWS4-HMAC-SHA256", "/?a=1;b=2&&&=", "/?Action=",
    "http://example.com/", "example.com:443", "/#fragment", "/service/X/operation/Y",
    "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=000000000000/20260101/us-east-1/s3/"
    "aws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=604800&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=" + "0" * 64,
)  # fmt: skip
AUTHORIZATIONS = (
    "", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=", "AWS 000000000000:x", "Basic Og==",
    "AWS4-HMAC-SHA256 Credential=000000000000/20260101/us-east-1/sts/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64,
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-content-sha256, Signature=" + "f" * 64,
    "AWS4-ECDSA-P256-SHA256 Credential=000000000000/20260101/s3/aws4_request, SignedHeaders=host, "
    "Signature=00", "AWS4-HMAC-SHA256 Credential=////, SignedHeaders=;;, Signature=",
)  # fmt: skip
HEADERS = (
    "X-Amz-Target: DynamoDB_20120810.ListTables", "X-Amz-Target: ", "Origin: null",
    "X-Amz-Date: 20260101T000000Z", "X-Amz-Date: yesterday", "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: websocket", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Content-Length: 5",
    "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: x",
    "Expect: 100-continue", "Content-Encoding: gzip", "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD",
    "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Authorization: AWS4-HMAC-SHA256 x",
    "Content-Type: application/x-www-form-urlencoded", "Smithy-Protocol: rpc-v2-cbor", "Broken",
    ": empty", " folded", "X-Long: " + "x" * 70_000, "X-Amz-Security-Token: \xff\xfe", "X\x00Y: 1",
)  # fmt: skip
BODIES = (
    b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n", b"\xff" * 300, b"{" * 5000,
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"Action=CreateStack&StackName=x", b"\x00\x01\x02",
)  # fmt: skip


def malformed(chance: random.Random, port: int) -> bytes:
    """A request that no key has signed."""
    host = chance.choice(
        (f"{HOST}:{port}", f"{HOST}:{port}", f"localhost:{port}", "example.com", "")
    )
    lines = [f"{chance.choice(METHODS)} {chance.choice(TARGETS)} {chance.choice(VERSIONS)}"]
    lines += [f"Host: {host}"] * chance.choice((1, 1, 1, 0, 2))
    if chance.random() < 0.5:
        lines.append(f"Authorization: {chance.choice(AUTHORIZATIONS)}")
    lines += chance.sample(HEADERS, chance.randrange(4))
    text = chance.choice(("\r\n", "\r\n", "\r\n", "\n")).join([*lines, "", ""])
    request = text.encode("latin-1") + chance.choice(BODIES)
    if chance.random() < 0.3:
        at = chance.randrange(len(request))
        request = request[:at] + chance.randbytes(chance.randrange(8)) + request[at + 1 :]
    return request[: chance.randrange(1, len(request))] if chance.random() < 0.1 else request


VERSIONS = ("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "")


def stored(port: int) -> Iterator[tuple[str, bytes]]:
    """Requests that were worth keeping, by name; ``PORT`` stands for the port."""
    for path in sorted(CORPUS.glob("*.http")):
        yield path.stem, path.read_bytes().replace(b"PORT", str(port).encode())


class Signed:
    """A request with a good signature, in parts that can be changed."""

    def __init__(self, chance: random.Random, port: int, secret: str) -> None:
        self.method = chance.choice(("GET", "PUT", "POST", "DELETE"))
        service = chance.choice(("s3", "dynamodb", "cloudformation"))
        words = ["".join(chance.choices("ab Z/+~%=&ü.*'", k=chance.randrange(6))) for _ in range(3)]
        self.path = "/" + quote(words[0], safe="/~")
        if service != "s3":  # all others sign it so
            self.path = normalize_url_path(self.path)
        query = {name: word for name, word in zip("pq", words[1:], strict=True) if word}
        self.body = (
            chance.randbytes(chance.randrange(40)) if self.method in ("PUT", "POST") else b""
        )
        request = AWSRequest(
            self.method, f"http://{HOST}:{port}{self.path}", {"Host": f"{HOST}:{port}"},
            self.body, query,
        )  # fmt: skip
        signer = S3SigV4Auth if service == "s3" else SigV4Auth
        signer(Credentials(ACCOUNT, secret), service, "us-east-1").add_auth(request)
        self.query = "&".join(f"{quote(k)}={quote(v, safe='')}" for k, v in query.items())
        self.headers = dict(request.headers.items())

    def wire(self) -> bytes:
        """The request as it is sent."""
        target = f"{self.path}?{self.query}" if self.query else self.path
        lines = [f"{self.method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"Content-Length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode() + self.body

    def change(self, chance: random.Random) -> str:
        """Change one part of what was signed; returns which."""
        part = chance.choice(PARTS)
        authorization = self.headers["Authorization"]
        if part == "method":
            self.method = "PATCH"
        elif part == "path":
            self.path += chance.choice("abc")
        elif part == "query":
            self.query += "&new=" if self.query else "new="
        elif part == "body":
            self.body += chance.randbytes(1)
        elif part == "fragment":
            self.path += chance.choice(("#", "#/../b", "#a?b"))
        elif part == "header":
            name = chance.choice(("Target", "Copy-Source", "Acl", "Security-Token", "New", ""))
            self.headers[f"{chance.choice(('X-Amz-', 'x-amz-', 'X-AMZ-'))}{name}"] = "x"
        elif part == "date":
            moment = self.headers["X-Amz-Date"]
            self.headers["X-Amz-Date"] = f"{moment[:14]}{(int(moment[14]) + 1) % 10}Z"
        elif part == "signature":
            at = len(authorization) - 1 - chance.randrange(64)
            digit = f"{(int(authorization[at], 16) + 1) % 16:x}"
            self.headers["Authorization"] = authorization[:at] + digit + authorization[at + 1 :]
        elif part == "scope":
            self.headers["Authorization"] = authorization.replace("us-east-1", "us-east-2")
        else:
            self.headers["Host"] = self.headers["Host"].replace(HOST, "localhost")
        return part


def exchange(port: int, request: bytes) -> bytes:
    """What is answered at once; TimeoutError where nothing is and the connection stays open."""
    answer = b""
    with socket.create_connection((HOST, port), timeout=LONGEST_SECONDS) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
                connection.settimeout(MORE_SECONDS if whole(answer, request) else LONGEST_SECONDS)
        except TimeoutError:
            if not whole(answer, request):
                raise
        except (ConnectionResetError, BrokenPipeError):
            pass  # refused before all of it was sent
    return answer


def whole(answer: bytes, request: bytes) -> bool:
    """Whether an answer that was sent is complete; the server keeps the connection for others."""
    head, end, body = answer.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, end, body = body.partition(b"\r\n\r\n")
    if not end:
        return False
    if request.startswith(b"HEAD ") or head.startswith(b"HTTP/1.1 101"):  # the latter to HTTP/2
        return True
    length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
    return body.endswith(b"0\r\n\r\n") if length is None else len(body) >= int(length[1])
