"""A flag change on a cloud that drops requests, or what it answered."""

from __future__ import annotations

import http.client
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse

import boto3
import pytest
from botocore.config import Config

from compilegate.adapters.stores import DynamoDbTable, SsmFlags
from compilegate.domain import ledger_keys, naming
from compilegate.ports import Ledger
from compilegate.usecases.flag.change_flag import change_flag
from compilegate_localcloud.lifecycle import LocalCloud
from tests import fakes
from tests.usecases.flag_changes import flag_change

NEVER, BEFORE, AFTER = "never", "before", "after"
NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length")


class DroppingProxy:
    """An HTTP proxy: counts requests from 0 and drops the ``number``-th as ``how`` says, once."""

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
            target = urlparse(request.path)._replace(scheme="", netloc="").geturl()
            upstream.request(request.command, target, body, dict(request.headers))
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()


pytestmark = pytest.mark.e2e
TABLE = "flag-ledger"
# Read the ledger, append, write the parameter, read the ledger.
CALLS = 4


def services_through(cloud: LocalCloud, proxy: str) -> Any:
    """The real stores of a local cloud, reached through a proxy."""
    patient = Config(
        retries={"mode": "standard", "max_attempts": 5}, proxies={"http": proxy}, connect_timeout=2
    )
    state = cloud.running_state()
    session: boto3.Session = state.session()
    dynamodb, ssm = (
        session.client(service, endpoint_url=state.endpoint, config=patient)
        for service in ("dynamodb", "ssm")
    )
    return replace(
        fakes.services("local"), ledger=Ledger(DynamoDbTable(dynamodb, TABLE)), flags=SsmFlags(ssm)
    )


def create_table(cloud: LocalCloud) -> None:
    keys = {"pk": "HASH", "sk": "RANGE"}
    cloud.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        BillingMode="PAY_PER_REQUEST",
    )


@pytest.fixture
def proxy(cloud: LocalCloud) -> Any:
    made = DroppingProxy(cloud.running_state().endpoint)
    yield made
    made.close()


def test_a_request_that_is_dropped_is_sent_again_and_changes_nothing_twice(
    cloud: LocalCloud, proxy: DroppingProxy
) -> None:
    """boto3 repeats a call whose answer was lost: what it had appended is then its own."""
    create_table(cloud)
    services = services_through(cloud, proxy.url)
    for how in (BEFORE, AFTER):
        for number in range(CALLS):
            workload = f"dropped-{how}-{number}"
            proxy.drop(number, how)
            made = change_flag(workload, flag_change("enable"), services=services)

            assert (True, 1) == (made.changed, made.version)
            assert proxy.seen > CALLS, "nothing was dropped"
            (entry,) = services.ledger.raw.entries(workload, ledger_keys.FLAG_ENTRIES)
            written = services.flags.read(naming.flag_parameter("local", workload))
            assert (1, entry["to"]) == (entry["version"], written)
