"""A flag change while the cloud itself fails: dropped requests, and an emulator that is killed."""

from __future__ import annotations

import http.client
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from compilegate.adapters.stores import DynamoDbTable, SsmFlags
from compilegate.domain import ledger_keys, naming
from compilegate.ports import Ledger
from compilegate.usecases.flag.change_flag import change_flag
from compilegate_localcloud.lifecycle import LocalCloud
from distributions.localcloud.tests.conftest import FAST, make_places
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
# Before these calls the ledger has been written, then the parameter as well.
WRITTEN = (2, 3)


def services_at(cloud: LocalCloud, **proxies: str) -> Any:
    """The real stores of a local cloud, reached through these proxies."""
    patient = Config(
        retries={"mode": "standard", "max_attempts": 5}, proxies=proxies, connect_timeout=2
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


def assert_made_once(services: Any, workload: str) -> None:
    (entry,) = services.ledger.raw.entries(workload, ledger_keys.FLAG_ENTRIES)
    name = naming.flag_parameter("local", workload)
    assert (1, entry["to"]) == (entry["version"], services.flags.read(name))


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
    services = services_at(cloud, http=proxy.url)
    for how in (BEFORE, AFTER):
        for number in range(CALLS):
            workload = f"dropped-{how}-{number}"
            proxy.drop(number, how)
            made = change_flag(workload, flag_change("enable"), services=services)

            assert (True, 1) == (made.changed, made.version)
            assert proxy.seen > CALLS, "nothing was dropped"
            assert_made_once(services, workload)


class Counted:
    """A store that does something just before a call of all those that share ``calls``."""

    def __init__(
        self, store: Any, calls: Iterator[int], number: int, act: Callable[[], None]
    ) -> None:
        self._store, self._calls, self._number, self._act = store, calls, number, act

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if next(self._calls) == self._number:
                self._act()
            return getattr(self._store, name)(*arguments)

        return call


@pytest.mark.slow
@pytest.mark.parametrize("number", WRITTEN)
def test_an_emulator_that_is_killed_in_the_middle_fails_the_change_and_a_new_one_takes_it(
    number: int, tmp_path: Path
) -> None:
    """The new one goes on where it was, with ledger and parameter as they were written."""
    with LocalCloud(places=make_places(tmp_path)) as cloud:
        pid = cloud.start(attached=True, extra_arguments=FAST).pid
        create_table(cloud)
        services, calls = services_at(cloud), count()
        ledger, flags = (
            Counted(store, calls, number, lambda: os.kill(pid, signal.SIGKILL))
            for store in (services.ledger, services.flags)
        )
        with pytest.raises(BotoCoreError):
            change_flag(
                "killed", flag_change("enable"),
                services=replace(services, ledger=ledger, flags=flags),
            )  # fmt: skip

    with LocalCloud(places=make_places(tmp_path)) as cloud:
        cloud.start(attached=True, extra_arguments=FAST)
        services = services_at(cloud)
        assert change_flag("killed", flag_change("enable"), services=services).changed
        assert_made_once(services, "killed")
