"""A flag change on real adapters: requests are lost, one or all from then on; many writers."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from compilegate.adapters.stores import DynamoDbTable, SsmFlags
from compilegate.ports import Ledger
from compilegate.usecases.flag.change_flag import change_flag
from compilegate_localcloud.lifecycle import LocalCloud
from tests import fakes
from tests.usecases.flag_changes import assert_sound, flag_change, history

PASSED, BEFORE, AFTER = "passed", "before", "after"
NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length")


class DroppingProxy:
    """An HTTP proxy: counts requests from 0 and drops the ``number``-th, and ``more`` after it."""

    def __init__(self, endpoint: str) -> None:
        self.numbers, self.how, self.seen = range(0), BEFORE, 0
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

    def drop(self, number: int, how: str, more: int = 0) -> None:
        """Drop these requests of those that come from now on."""
        self.numbers, self.how, self.seen = range(number, number + 1 + more), how, 0

    def _pass(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        how = self.how if self.seen in self.numbers else PASSED
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
CALLS, APPEND = 4, 1
MOMENTS = [(number, how) for how in (BEFORE, AFTER) for number in range(CALLS)]


def services_at(cloud: LocalCloud, attempts: int = 6, **proxies: str) -> Any:
    """The real stores of a local cloud, reached through these proxies."""
    patient = Config(
        retries={"mode": "standard", "total_max_attempts": attempts},
        proxies=proxies,
        connect_timeout=2,
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


@pytest.fixture(scope="module")
def services(cloud: LocalCloud) -> Any:
    """The stores as they are reached where nothing is lost."""
    keys = {"pk": "HASH", "sk": "RANGE"}
    cloud.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    return services_at(cloud)


@pytest.fixture
def proxy(cloud: LocalCloud) -> Any:
    made = DroppingProxy(cloud.running_state().endpoint)
    yield made
    made.close()


def assert_made_once(services: Any, workload: str) -> None:
    assert_sound(services, workload)
    assert [1] == [entry["version"] for entry in history(services, workload)]


@pytest.mark.parametrize(("number", "how"), MOMENTS)
def test_a_request_that_is_dropped_is_sent_again_and_changes_nothing_twice(
    number: int, how: str, services: Any, cloud: LocalCloud, proxy: DroppingProxy
) -> None:
    """boto3 repeats a call whose answer was lost: what it had appended is then its own."""
    workload, dropping = f"dropped-{how}-{number}", services_at(cloud, http=proxy.url)
    proxy.drop(number, how)
    made = change_flag(workload, flag_change("enable"), services=dropping)

    assert (True, 1) == (made.changed, made.version)
    assert proxy.seen > CALLS, "nothing was dropped"
    assert_made_once(services, workload)


@pytest.mark.parametrize(("number", "how"), MOMENTS)
def test_a_change_that_the_cloud_ends_is_made_by_running_again(
    number: int, how: str, services: Any, cloud: LocalCloud, proxy: DroppingProxy
) -> None:
    """What runs again finds ledger and parameter as after a process that died at this call."""
    workload, dropping = f"ended-{how}-{number}", services_at(cloud, 1, http=proxy.url)
    proxy.drop(number, how, more=CALLS)
    with pytest.raises(BotoCoreError):
        change_flag(workload, flag_change("enable"), services=dropping)
    assert number + 1 == proxy.seen
    appended = number > APPEND or (number, how) == (APPEND, AFTER)
    assert appended is bool(history(services, workload))

    assert change_flag(workload, flag_change("enable"), services=services).changed
    assert_made_once(services, workload)


def test_many_writers_at_once_lose_nothing(services: Any) -> None:
    kinds = ["human set", "human revert"] * 6
    changes = [flag_change(kind, f"change#{number}") for number, kind in enumerate(kinds)]
    # More at once are refused for longer than a client tries again, at the service's rate.
    with ThreadPoolExecutor(max_workers=3) as pool:
        made = list(pool.map(lambda one: change_flag("many", one, services=services), changes))

    assert all(change.changed for change in made)
    assert set(range(1, len(kinds) + 1)) == {change.version for change in made}
    assert len(kinds) == len(history(services, "many"))
    assert_sound(services, "many")
