"""Malformed requests to the gate: none acts, none hangs, none leaves a traceback."""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pytest

from compilegate_localcloud.places import REPOSITORY
from distributions.localcloud.tests.raw_requests import Signed, exchange, malformed, stored
from tests import fuzzing
from tests.fuzzing import Target

SECRET = "fuzzing"  # of a gate without a cloud
PYTHON = REPOSITORY / ".venv-localcloud" / "bin" / "python"
UNCHANGED = 0.2  # of the signed requests are also sent as they are
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")


@dataclass
class GateAlone:
    """A gate that serves, and what it has printed."""

    port: int
    printed: IO[bytes]

    def check(self, what: object, request: bytes, *allowed: int) -> None:
        """Send it; every answer must be among the allowed ones, if there is one."""
        try:
            answer = exchange(self.port, request)
        except TimeoutError:
            raise AssertionError(f"{what} hangs: {request[:300]!r}") from None
        statuses = [int(status) for status in STATUS.findall(answer)]
        assert set(statuses) <= {100, 101, *allowed}, f"{what} {statuses}: {request[:300]!r}"
        assert b"acted" not in answer or 200 in allowed, f"{what} acted: {request[:300]!r}"
        self.printed.seek(0)
        printed = self.printed.read()
        assert b"Traceback" not in printed, f"{what}: {request[:300]!r}\n{printed.decode()}"


@pytest.fixture(scope="module")
def gate() -> Iterator[GateAlone]:
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [PYTHON, "-m", "distributions.localcloud.tests.gate_alone"],
            cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "AWS_SECRET_ACCESS_KEY": SECRET,
                 "AWS_ACCESS_KEY_ID": "000000000000"},
        )  # fmt: skip
        try:
            yield GateAlone(int(process.stdout.readline()), printed)
        finally:
            process.kill()
            process.wait()


REFUSALS = (400, 403, 404, 405, 413, 414, 431, 501, 505)


def test_signed_request_is_let_in_and_one_with_another_key_is_not(gate: GateAlone) -> None:
    request = Signed(random.Random(1), gate.port, SECRET)
    stranger = Signed(random.Random(1), gate.port, "guessed")

    assert b'{"acted": ' in exchange(gate.port, request.wire())
    gate.check("another key", stranger.wire(), 403)


def test_stored_requests(gate: GateAlone) -> None:
    for name, request in stored(gate.port):
        gate.check(name, request, *REFUSALS)


@pytest.mark.fuzz
def test_malformed_requests(gate: GateAlone) -> None:
    def attempt(chance: random.Random) -> None:
        gate.check("it", malformed(chance, gate.port), *REFUSALS)

    print(fuzzing.run(Target("gate, malformed", attempt, share=0.004, quick=100)))  # noqa: T201


@pytest.mark.fuzz
def test_signed_requests_that_were_changed(gate: GateAlone) -> None:
    def attempt(chance: random.Random) -> None:
        request = Signed(chance, gate.port, SECRET)
        if chance.random() < UNCHANGED:
            gate.check("unchanged", request.wire(), 200)
        gate.check(request.change(chance), request.wire(), *REFUSALS)

    print(fuzzing.run(Target("gate, changed", attempt, share=0.002, quick=100)))  # noqa: T201
