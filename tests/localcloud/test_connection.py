"""Clients of a running embedded cloud, without one that runs."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from compilegate.localcloud import connection
from compilegate.localcloud.connection import RunState


def test_threads_that_ask_at_once_get_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_slowly(*_: object, **__: object) -> object:
        time.sleep(0.05)
        return object()

    session = SimpleNamespace(client=made_slowly)
    monkeypatch.setattr(connection.boto3, "Session", lambda **_: session)
    state = RunState("test-of-threads", 1, 1, "us-east-1", False, False, False, 0.0)
    together = threading.Barrier(4)

    def asked(_: int) -> object:
        together.wait()
        return state.client("s3")

    with ThreadPoolExecutor(4) as threads:
        clients = list(threads.map(asked, range(4)))

    assert 1 == len(set(map(id, clients)))
