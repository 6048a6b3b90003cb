"""How long a busy service is asked again, and how the askers are spread.

Full jitter: a wait is drawn evenly between nothing and a limit that doubles (Brooker, "Exponential
backoff and jitter", AWS Architecture Blog 2015). The numbers are measured in
benchmarks/flag_reads.py: ten thousand jobs that ask within the same second.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")

BUSY = {
    "InternalServerError",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
# A service that does not answer at all is out of reach rather than busy.
UNREACHABLE_ATTEMPTS = 3
# Not the script's generator: jobs of one seed would all wait alike, and it would be moved on.
_CHANCE = random.SystemRandom()


@dataclass(frozen=True)
class Backoff:
    """``seconds`` bound the whole wait; a single one is at most ``first`` times 2^n or ``most``."""

    seconds: float = 600.0
    first: float = 1.0
    most: float = 30.0

    def waits(self, uniform: Callable[[float, float], float] = _CHANCE.uniform) -> Iterator[float]:
        """Seconds to wait before each further attempt, without end."""
        limit = self.first
        while True:
            yield uniform(0.0, limit)
            limit = min(2 * limit, self.most)


def call_with_retry(
    call: Callable[[], Answer],
    backoff: Backoff,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Answer:
    """The answer of ``call``, asked again while the service is busy and there is time.

    Raises what ``call`` last raised: at once where asking again would not help.
    """
    deadline, unreached = now() + backoff.seconds, 0
    for wait in backoff.waits():
        try:
            return call()
        except Exception as error:
            unreached += error_code(error) is None
            # botocore's classes are not imported for it.
            kinds = {kind.__name__ for kind in type(error).__mro__}
            is_transport = bool(kinds & {"HTTPClientError", "ConnectionError"})
            retry = error_code(error) in BUSY or (is_transport and unreached < UNREACHABLE_ATTEMPTS)
            if not retry or now() + wait > deadline:
                raise
        sleep(wait)
    raise AssertionError("waits end only with an answer or an error")


def error_code(error: Exception) -> str | None:
    """The code that AWS gave the error; None where it gave none."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return None if code is None else str(code)
