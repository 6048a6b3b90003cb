"""A proxy before the local cloud that drops one request: unsent, or answered and not passed on."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse

NEVER, BEFORE, AFTER = "never", "before", "after"
NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length")


class DroppingProxy:
    """Counts requests from 0 and drops the ``number``-th as ``how`` says, once."""

    def __init__(self, endpoint: str) -> None:
        self.number, self.how, self.seen = 0, NEVER, 0
        self._upstream = urlparse(endpoint)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # the name that http.server looks for
                proxy._pass(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Take no more requests."""
        self._server.shutdown()
        self._server.server_close()

    def drop(self, number: int, how: str) -> None:
        """Drop this request of those that come from now on."""
        self.number, self.how, self.seen = number, how, 0

    def _pass(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        how = self.how if self.seen == self.number else NEVER
        self.seen += 1
        if how == BEFORE:
            request.close_connection = True
            return
        status, headers, answer = self._forward(request, body)
        if how == AFTER:
            request.close_connection = True
            return
        request.send_response(status)
        for name, value in headers:
            if name.lower() not in NOT_PASSED_ON:
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer)))
        request.end_headers()
        request.wfile.write(answer)

    def _forward(
        self, request: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(str(self._upstream.hostname), self._upstream.port)
        try:
            upstream.request(request.command, request.path, body, dict(request.headers))
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()
