"""A call to AWS that ends in time and holds little, whatever the endpoint does.

The client's own timeouts count from one byte to the next, and botocore reads an answer whole
whatever its size: an endpoint that drips or floods would hold the caller or take its memory.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar

from compilegate.flags.backoff import Backoff

SECONDS_VARIABLE = "COMPILEGATE_FLAG_SECONDS"
SECONDS, MOST_SECONDS = 5.0, 3600.0
# A parameter has 8 KB at most, of which JSON may write each byte as six; the rest is the envelope.
MOST_BYTES = 64 * 1024
# The description of a training job holds more: a hundred hyperparameters of 2.5 KB, variables.
MOST_BYTES_OF_A_JOB = 2 * 1024 * 1024

Answer = TypeVar("Answer")
logger = logging.getLogger("compilegate.flags")


class TooLongError(ValueError):
    """An answer with more bytes than any that AWS gives."""


@dataclass
class Calls:
    """The calls of one client: one at a time, so that those which are stuck do not pile up.

    ``kept`` is what earlier ones have brought.
    """

    busy: threading.Lock = field(default_factory=threading.Lock)
    kept: dict[str, Any] = field(default_factory=dict)

    def within(self, seconds: float, call: Callable[[], Answer]) -> Answer:
        """The answer of ``call``; raises TimeoutError where there is none in time."""
        deadline = time.monotonic() + seconds
        if not self.busy.acquire(timeout=max(0.0, seconds)):
            raise TimeoutError(f"an earlier call has had no answer for {seconds:.3g} s")
        outcomes: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = call(), None
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                outcome = None, error
            self.busy.release()
            outcomes.put(outcome)

        try:
            threading.Thread(target=work, name="compilegate-flags", daemon=True).start()
        except BaseException:
            self.busy.release()
            raise
        try:
            answer, error = outcomes.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"no answer within {seconds:.3g} s") from None
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]


_calls: dict[tuple[str, int], Calls] = {}


def calls_of(service: str, client: Any) -> Calls:
    """The calls of a client, as long as it lives; None is the client that is made here."""
    key = (service, id(client))
    calls = _calls.get(key)
    if calls is not None:
        return calls
    calls = Calls()
    if client is not None:
        try:
            weakref.finalize(client, _calls.pop, key, None).atexit = False
        except TypeError:  # nothing would say when its id is another's: each call is its first
            return calls
    return _calls.setdefault(key, calls)


def forget() -> None:
    """Forget every client and what it has brought."""
    _calls.clear()


def bounds(backoff: Backoff | None) -> tuple[Backoff, float]:
    """How a busy service is asked again, and after how many seconds the whole call is given up."""
    text, seconds = os.environ.get(SECONDS_VARIABLE), SECONDS
    if text:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds <= MOST_SECONDS:
            logger.warning(
                "%s is %r, which is no number of seconds up to %g: %g are used",
                SECONDS_VARIABLE, text[:120], MOST_SECONDS, SECONDS,
            )  # fmt: skip
            seconds = SECONDS
    if backoff is None:
        return Backoff(seconds=seconds), seconds
    return backoff, min(max(seconds, backoff.seconds), MOST_SECONDS)


def client_of(service: str) -> Any:
    """A client with the environment's credentials and region."""
    import boto3  # noqa: PLC0415 - a script that passes its own client need not have it
    from botocore.config import Config  # noqa: PLC0415 - as above

    # A job must not hang on what it may not reach; attempts are counted in backoff.py.
    once = {"total_max_attempts": 1}
    return boto3.client(service, config=Config(connect_timeout=3, read_timeout=5, retries=once))


def limited(client: Any, most_bytes: int, seconds: float) -> Any:
    """The client with a bound on an answer's size and time; others are returned as they are.

    A copy that shares credentials and connections: the caller's client stays as it is. botocore
    has no public way to bound an answer.
    """
    endpoint: Any = getattr(client, "__dict__", {}).get("_endpoint")
    session = getattr(endpoint, "http_session", None)
    if session is None:
        return client
    # Not copy.copy: a client answers the look-up of methods to copy with by asking itself.
    mine, its_endpoint = object.__new__(type(client)), object.__new__(type(endpoint))
    vars(mine).update(vars(client))
    vars(its_endpoint).update(vars(endpoint))
    its_endpoint.http_session = _Session(session, most_bytes, time.monotonic() + seconds)
    mine._endpoint = its_endpoint
    return mine


@dataclass(frozen=True)
class _Session:
    """A session of botocore's whose answers are read in parts; ``deadline`` is monotonic."""

    session: Any
    most_bytes: int
    deadline: float

    def send(self, request: Any) -> Any:
        """The response with its content, as botocore's own session gives it."""
        from botocore.exceptions import HTTPClientError  # noqa: PLC0415 - whose client this is

        self._check_time()
        request.stream_output = True  # so that it is read here
        response = self.session.send(request)
        raw = response.raw
        try:
            parts = list(self._parts(raw))
        except (TooLongError, TimeoutError):
            raw.close()
            raise
        except Exception as error:
            raise HTTPClientError(error=error) from error
        response.raw = SimpleNamespace(stream=lambda: parts)  # what its content is read from
        return response

    def _parts(self, raw: Any) -> Iterator[bytes]:
        # What there is: to ask for more would wait for it, however slowly it comes. urllib3 1 reads
        # a byte at a time.
        read = getattr(raw, "read1", None) or (lambda _: raw.read(1))
        size = 0
        while part := read(4096):
            size += len(part)
            if size > self.most_bytes:
                raise TooLongError(f"the answer is longer than {self.most_bytes} bytes")
            self._check_time()
            yield part

    def _check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise TimeoutError("the answer came too late")
