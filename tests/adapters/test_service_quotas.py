"""Quotas as Service Quotas lists them, and what happens when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.adapters.service_quotas import ServiceQuotas, UnknownQuotas


class Listing:
    """ListServiceQuotas, one quota a page; counts how often it is asked."""

    def __init__(self, quotas: dict[str, float], failure: Exception | None = None) -> None:
        self.quotas, self.failure, self.asked = quotas, failure, 0

    def get_paginator(self, operation: str) -> Listing:
        assert "list_service_quotas" == operation
        return self

    def paginate(self, *, ServiceCode: str, **_: Any) -> Any:  # noqa: N803
        assert "sagemaker" == ServiceCode
        self.asked += 1
        if self.failure:
            raise self.failure
        for name, value in self.quotas.items():
            yield {"Quotas": [{"QuotaName": name, "Value": value}]}


LISTED = {
    "ml.g5.xlarge for training job usage": 4.0,
    "ml.g5.xlarge for spot training job usage": 0.0,
    "ml.g5.xlarge for endpoint usage": 9.0,
    "ml.p4d.24xlarge for training warm pool usage": 7.0,
}


@pytest.mark.parametrize(
    ("kind", "spot", "expected"),
    [
        ("ml.g5.xlarge", False, 4),
        ("ml.g5.xlarge", True, 0),
        ("ml.p4d.24xlarge", False, None),
    ],
)
def test_only_quotas_of_training_jobs_count(kind: str, spot: bool, expected: int | None) -> None:
    quotas = ServiceQuotas(Listing(LISTED))

    assert expected == quotas.training_instances(kind, spot=spot)


def test_they_are_listed_once() -> None:
    listing = Listing(LISTED)
    quotas = ServiceQuotas(listing)
    for kind in ("ml.g5.xlarge", "ml.g5.2xlarge"):
        quotas.training_instances(kind, spot=False)

    assert 1 == listing.asked


def test_a_failure_leaves_them_unknown_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    listing = Listing({}, RuntimeError("denied"))
    quotas = ServiceQuotas(listing)

    found = [quotas.training_instances("ml.g5.xlarge", spot=False) for _ in range(2)]

    assert [None, None] == found
    assert 1 == listing.asked
    assert "quotas could not be read" in caplog.text


def test_a_slow_answer_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    ticks = iter(range(0, 1000, 15))
    quotas = ServiceQuotas(Listing(LISTED), seconds=lambda: float(next(ticks)))

    assert quotas.training_instances("ml.g5.xlarge", spot=False) is None
    assert "longer than 20 s" in caplog.text


def test_the_embedded_cloud_knows_none() -> None:
    assert UnknownQuotas().training_instances("ml.g5.xlarge", spot=False) is None
