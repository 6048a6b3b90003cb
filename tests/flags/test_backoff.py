"""A busy service is asked again, for a bounded time; whatever else fails is not."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
)

from compilegate.flags.backoff import UNREACHABLE_ATTEMPTS, Backoff, call_with_retry
from tests.flags.ssm import refusal


class Service:
    """Answers after ``failures``; time passes by waiting alone."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.time = 0.0
        self.waits: list[float] = []

    def call(self) -> str:
        self.calls += 1
        if self.failures:
            failure = self.failures[0]
            if len(self.failures) > 1:
                self.failures.pop(0)
            raise failure
        return "answer"

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def ask(self, backoff: Backoff) -> str:
        return call_with_retry(self.call, backoff, sleep=self.sleep, now=lambda: self.time)


def test_a_service_that_becomes_free_answers() -> None:
    service = Service(refusal("ThrottlingException"))

    def sleep(seconds: float) -> None:
        service.sleep(seconds)
        if len(service.waits) == 3:
            service.failures.clear()

    result = call_with_retry(service.call, Backoff(), sleep=sleep, now=lambda: service.time)

    assert ("answer", 4) == (result, service.calls)


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (refusal("AccessDeniedException"), 1), (NoCredentialsError(), 1),
        (EndpointConnectionError(endpoint_url="https://ssm"), 3),
        (ConnectTimeoutError(endpoint_url="https://ssm"), 3), (HTTPClientError(error="reset"), 3),
    ],
)  # fmt: skip
def test_what_will_not_change_is_not_asked_again_and_what_is_out_of_reach_given_up_soon(
    error: Exception, calls: int
) -> None:
    """A job in a network without a way to SSM must not wait ten minutes on paid GPUs."""
    service = Service(error)

    with pytest.raises(type(error)):
        service.ask(Backoff())

    assert (calls, calls - 1) == (service.calls, len(service.waits))
    assert service.time <= 2 * Backoff().first + 1


def test_a_busy_service_is_asked_for_ten_minutes_and_one_out_of_reach_three_times() -> None:
    assert Backoff(seconds=600.0, first=1.0, most=30.0) == Backoff()
    assert 3 == UNREACHABLE_ATTEMPTS


@pytest.mark.parametrize(
    "code",
    ["InternalServerError", "RequestLimitExceeded", "ServiceUnavailable", "Throttling",
     "ThrottlingException", "TooManyRequestsException"],
)  # fmt: skip
def test_a_busy_service_is_asked_until_the_time_is_over(code: str) -> None:
    service = Service(refusal(code))

    with pytest.raises(type(refusal(code))):
        service.ask(Backoff(seconds=120.0))

    assert service.time <= 120.0
    assert service.calls > 4


@pytest.mark.parametrize(("last", "calls", "time"), [(5.0, 4, 10.0), (5.5, 3, 5.0)])
def test_the_last_question_comes_no_later_than_the_time_is_over(
    last: float, calls: int, time: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backoff, "waits", lambda _: iter((2.0, 3.0, last, 0.5)))
    service = Service(refusal("Throttling"))

    with pytest.raises(type(refusal("Throttling"))):
        service.ask(Backoff(seconds=10.0))

    assert (calls, time) == (service.calls, service.time)


def test_no_wait_is_longer_than_its_limit_and_limits_double_up_to_the_longest() -> None:
    limits = []
    waits = Backoff(first=1.0, most=8.0).waits(lambda low, high: limits.append((low, high)) or 0.0)
    for _ in range(6):
        next(waits)

    assert [(0.0, high) for high in (1.0, 2.0, 4.0, 8.0, 8.0, 8.0)] == limits
