"""An endpoint that never answers, drips or floods delays no caller and takes no memory."""

from __future__ import annotations

import io
import json
import logging
import socket
import socketserver
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config

from compilegate.domain import naming
from compilegate.domain.flag import Flag
from compilegate.flags import bounded, may_release, reading, resolve
from compilegate.flags.backoff import Backoff
from tests.flags.ssm import ON, FakeSsm

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\n"
JOB = "arn:aws:sagemaker:us-east-1:111122223333:training-job/nightly"
DEADLINE = 0.5
Endpoint = Callable[[socket.socket, threading.Event], None]


def silent(_: socket.socket, over: threading.Event) -> None:
    over.wait(20)


def drips(link: socket.socket, over: threading.Event) -> None:
    link.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
    while not over.wait(0.1):
        link.sendall(b" ")


def drips_chunks(link: socket.socket, over: threading.Event) -> None:
    link.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not over.wait(0.1):
        link.sendall(b"1\r\n \r\n")


def drips_headers(link: socket.socket, over: threading.Event) -> None:
    link.sendall(HEAD)
    while not over.wait(0.1):
        link.sendall(b"a")


def floods(link: socket.socket, over: threading.Event) -> None:
    link.sendall(HEAD + b"\r\n")
    while not over.is_set():
        link.sendall(b" " * 2**20)


def answers(link: socket.socket, _: threading.Event) -> None:
    body = json.dumps({"Parameter": {"Value": ON.to_json()}, "Tags": []}).encode()
    link.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def fails(link: socket.socket, _: threading.Event) -> None:
    FAILED.append(1)
    body = b'{"__type": "InternalServerError"}'
    head = HEAD.replace(b"200 OK", b"500 Internal Server Error")
    link.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


FAILED: list[int] = []


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[str]:
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.recv(65536)
                endpoint(self.request, over)
            except OSError:
                pass  # the client has hung up

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


def client_of(service: str, url: str) -> Any:
    return boto3.client(
        service, endpoint_url=url, region_name="us-east-1", aws_access_key_id="k",
        aws_secret_access_key="s", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def surrounded(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """An environment from which a client can be made that asks ``url``."""
    for name, value in (
        ("ENDPOINT_URL", url), ("ACCESS_KEY_ID", "k"), ("SECRET_ACCESS_KEY", "s"),
        ("DEFAULT_REGION", "us-east-1"),
    ):  # fmt: skip
        monkeypatch.setenv(f"AWS_{name}", value)


def at_work() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "compilegate-flags"]


def ended(seconds: float = 3.0) -> bool:
    """Whether no thread is left, which a stuck one may take a moment for."""
    until = time.monotonic() + seconds
    while at_work() and time.monotonic() < until:
        time.sleep(0.02)
    return not at_work()


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COMPILEGATE_FLAG_SECONDS", str(DEADLINE))
    yield
    assert ended()


@pytest.mark.parametrize("endpoint", [silent, drips, drips_chunks, drips_headers, floods])
@pytest.mark.parametrize("ask", ["resolve", "with its own client", "may release"])
def test_a_slow_or_endless_answer_is_the_baseline_in_time(
    endpoint: Endpoint,
    ask: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(endpoint) as url:
        surrounded(monkeypatch, url)
        service = "sagemaker" if ask == "may release" else "ssm"
        client = None if ask == "with its own client" else client_of(service, url)
        began = time.monotonic()

        if ask == "may release":
            assert not may_release(JOB, client=client)
        else:
            assert {} == resolve("bert-docs", client=client)
            assert "cannot be used, training with the baseline: " in caplog.text

        assert time.monotonic() - began < DEADLINE + 0.4
        if endpoint in (drips, drips_chunks):  # between two bytes it is seen that it is too late
            assert ended(1.0)


def test_a_flood_is_not_held_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    with serving(floods) as url:
        client = client_of("ssm", url)
        tracemalloc.start()
        try:
            assert {} == resolve("bert-docs", client=client, backoff=Backoff(seconds=10))
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert "longer than 65536 bytes" in caplog.text
    assert most < 12 * 2**20


def test_a_whole_answer_is_followed_and_the_callers_client_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(answers) as url:
        client = client_of("ssm", url)
        endpoint, session = client._endpoint, client._endpoint.http_session
        surrounded(monkeypatch, url)

        assert ON.overrides == resolve("bert-docs", client=client) == resolve("bert-docs")
        assert endpoint is client._endpoint
        assert session is client._endpoint.http_session
        assert may_release(JOB, client=client_of("sagemaker", url))
        assert may_release(JOB)  # with the client that is made here


def test_attempts_are_counted_here_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    FAILED.clear()
    with serving(fails) as url:
        surrounded(monkeypatch, url)

        assert {} == resolve("bert-docs", backoff=Backoff(seconds=0.0))
        assert not may_release(JOB, backoff=Backoff(seconds=0.0))

    assert [1, 1] == FAILED


@pytest.mark.parametrize("endpoint", [answers, drips, floods])
def test_an_older_urllib3_reads_a_byte_at_a_time(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib3.HTTPResponse, "read1", None)
    with serving(endpoint) as url:
        overrides = resolve("bert-docs", client=client_of("ssm", url))

        assert (ON.overrides if endpoint is answers else {}) == overrides
        assert ended(1.0)


class Stuck:
    """A client whose calls end when they are let go."""

    def __init__(self) -> None:
        self.go, self.asked, self.together, self.most = threading.Event(), 0, 0, 0

    def get_parameter(self, Name: str) -> dict[str, Any]:  # noqa: N803 - boto3's own
        self.asked += 1
        self.together += 1
        self.most = max(self.most, self.together)
        self.go.wait(20)
        self.together -= 1
        return {"Parameter": {"Value": ON.to_json()}}


def test_calls_that_are_stuck_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILEGATE_FLAG_SECONDS", "0.1")
    client = Stuck()

    assert [{}] * 5 == [resolve(f"job-{number}", client=client) for number in range(5)]
    assert (1, 1) == (client.asked, len(at_work()))
    client.go.set()
    assert ended()
    assert resolve("job-5", client=client)
    assert (2, 1) == (client.asked, client.most)


def test_threads_that_wait_for_another_ones_answer_wait_no_longer_than_they_may() -> None:
    client, waited = Stuck(), []
    patient = threading.Thread(
        target=resolve, args=("bert-docs",), kwargs={"client": client, "backoff": Backoff(20)}
    )
    patient.start()
    while not client.asked:
        time.sleep(0.01)
    began = time.monotonic()
    choice = reading.choose("bert-docs", client=client)
    waited.append(time.monotonic() - began)
    client.go.set()
    patient.join()

    assert "TimeoutError: no answer within 0.5 s" == choice.problem
    assert DEADLINE <= waited[0] < DEADLINE + 0.4
    assert resolve("bert-docs", client=client)  # what the first was waiting for


def test_a_thread_that_cannot_be_started_is_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    client = FakeSsm(ON.to_json())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert {} == resolve("bert-docs", client=client)
    assert resolve("other", client=client)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.25", 0.25), ("3600", 3600.0), ("", 5.0), *((bad, 5.0) for bad in (
        "0", "-1", "3601", "nan", "inf", "soon",
    ))],
)  # fmt: skip
def test_the_environment_sets_the_time(
    text: str, seconds: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("COMPILEGATE_FLAG_SECONDS", text)

    assert (Backoff(seconds=seconds), seconds) == bounded.bounds(None)
    warned = [
        one for one in caplog.records
        if (one.name, one.levelno) == ("compilegate.flags", logging.WARNING)
    ]  # fmt: skip
    assert (1 if text and seconds == 5.0 else 0) == len(warned)


class Sends:
    """A session of botocore's that answers with so many bytes."""

    def __init__(self, size: int) -> None:
        self.raw, self.sent = io.BytesIO(b"x" * size), 0

    def send(self, _: Any) -> With:
        self.sent += 1
        return With(raw=self.raw)


class With:
    """A client, an endpoint, a request, a response: with attributes."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def sent(session: Sends, *, most: int, seconds: float) -> int:
    client = With(_endpoint=With(http_session=session))
    bound = bounded.limited(client, most, seconds)._endpoint.http_session
    assert client._endpoint.http_session is session
    return len(b"".join(bound.send(With()).raw.stream()))


def test_an_answer_has_as_many_bytes_as_it_may_and_no_more() -> None:
    assert 10_000 == sent(Sends(10_000), most=10_000, seconds=60.0)
    flood = Sends(10_001)
    with pytest.raises(bounded.TooLongError):
        sent(flood, most=10_000, seconds=60.0)
    assert flood.raw.closed
    late = Sends(1)
    with pytest.raises(TimeoutError):
        sent(late, most=10, seconds=-1.0)
    assert 0 == late.sent


def test_the_longest_flag_fits_however_it_is_written() -> None:
    name = naming.flag_parameter("p" * 20, "n" * 60)
    value = Flag(True, "permanent", "compile", {"hyperparameters": {"a": "é" * 600}}).to_json()
    written = "".join(f"\\u{ord(one):04x}" for one in value.ljust(8192))

    assert len(written) + 10 * len(name) + 2048 < bounded.MOST_BYTES
    assert (65_536, 2_097_152) == (bounded.MOST_BYTES, bounded.MOST_BYTES_OF_A_JOB)
