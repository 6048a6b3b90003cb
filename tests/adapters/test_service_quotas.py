"""Quotas as Service Quotas answers them, and what happens when it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from compilegate.adapters import sagemaker, stores
from compilegate.adapters.sagemaker import LISTING_SECONDS, MOST_SECONDS, PAGE_SIZE, ServiceQuotas
from compilegate.facts import quota_codes

XLARGE, SPOT = "ml.g5.xlarge for training job usage", "ml.g5.xlarge for spot training job usage"
LISTED = {
    XLARGE: 4.0,
    SPOT: 0.0,
    "ml.g5.xlarge for endpoint usage": 9.0,
    "ml.p4d.24xlarge for training warm pool usage": 7.0,
}


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetServiceQuota")


class Account:
    """Service Quotas of an account: ``applied`` and ``defaults`` by code, ``listed`` by name.

    The listing has one quota a page. ``calls`` are the operations that were called.
    """

    def __init__(
        self,
        *,
        applied: dict[str, tuple[str, float]] | None = None,
        defaults: dict[str, tuple[str, float]] | None = None,
        listed: dict[str, float] | None = None,
        failure: Exception | None = None,
    ) -> None:
        self.applied, self.defaults = applied or {}, defaults or {}
        self.listed, self.failure = listed or {}, failure
        self.calls: list[str] = []

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Any:  # noqa: N803
        return self._get("get_service_quota", self.applied, ServiceCode, QuotaCode)

    def get_aws_default_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Any:  # noqa: N803
        return self._get("get_aws_default_service_quota", self.defaults, ServiceCode, QuotaCode)

    def _get(self, name: str, quotas: dict[str, tuple[str, float]], service: str, code: str) -> Any:
        assert "sagemaker" == service
        self.calls.append(name)
        if self.failure:
            raise self.failure
        if code not in quotas:
            raise refusal("NoSuchResourceException")
        return {"Quota": {"QuotaName": quotas[code][0], "Value": quotas[code][1]}}

    def get_paginator(self, operation: str) -> Account:
        assert "list_service_quotas" == operation
        return self

    def paginate(self, *, ServiceCode: str, PaginationConfig: Any) -> Any:  # noqa: N803
        assert ("sagemaker", {"PageSize": 100}) == (ServiceCode, PaginationConfig)
        self.calls.append("list_service_quotas")
        if self.failure:
            raise self.failure
        for name, value in self.listed.items():
            yield {"Quotas": [{"QuotaName": name, "Value": value}]}


class Clock:
    """Seconds that go by with every look at it."""

    def __init__(self, seconds_a_look: float = 0.0) -> None:
        self.now, self.step = 0.0, seconds_a_look

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def quotas_of(account: Account, codes: dict[tuple[str, bool], str] | None = None) -> ServiceQuotas:
    return ServiceQuotas(account, lambda: codes or {})


CODE = {("ml.g5.xlarge", False): "L-1"}
BY_CODE, BY_DEFAULT = "get_service_quota", "get_aws_default_service_quota"


@pytest.mark.parametrize(
    ("account", "codes", "kind", "spot", "expected", "calls"),
    [
        ({}, {}, "ml.g5.xlarge", False, 4, ["list_service_quotas"]),
        ({}, {}, "ml.g5.xlarge", True, 0, ["list_service_quotas"]),
        ({}, {}, "ml.p4d.24xlarge", False, None, ["list_service_quotas"]),
        ({"applied": {"L-1": (XLARGE, 3.0)}}, CODE, "ml.g5.xlarge", False, 3, [BY_CODE]),
        ({"defaults": {"L-1": (XLARGE, 0.0)}}, CODE, "ml.g5.xlarge", False, 0,
         [BY_CODE, BY_DEFAULT]),
        # A code that leads to another quota is not believed.
        ({"applied": {"L-1": (SPOT, 64.0)}}, CODE, "ml.g5.xlarge", False, 4,
         [BY_CODE, "list_service_quotas"]),
    ],
)  # fmt: skip
def test_a_quota_is_asked_for_by_its_code_else_looked_up_among_those_of_training_jobs(
    *, account: dict[str, Any], codes: dict[tuple[str, bool], str], kind: str, spot: bool,
    expected: int | None, calls: list[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    asked = Account(**account, listed=LISTED)

    assert expected == quotas_of(asked, codes).training_instances(kind, spot=spot)
    assert calls == asked.calls
    other = (SPOT, 64.0) in account.get("applied", {}).values()
    assert other == ("not that of ml.g5.xlarge" in caplog.text)


def test_types_without_a_code_share_one_listing() -> None:
    account = Account(listed=LISTED)
    quotas = quotas_of(account)
    for kind in ("ml.g5.xlarge", "ml.g5.2xlarge"):
        quotas.training_instances(kind, spot=False)

    assert ["list_service_quotas"] == account.calls


def test_a_failure_leaves_them_unknown_and_each_way_is_tried_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    account = Account(failure=refusal("AccessDeniedException"))
    kinds = ("ml.g5.xlarge", "ml.g5.2xlarge")
    quotas = quotas_of(account, {(kind, False): f"L-{n}" for n, kind in enumerate(kinds)})

    assert [None, None] == [quotas.training_instances(kind, spot=False) for kind in kinds]
    assert ["get_service_quota", "list_service_quotas"] == account.calls
    assert ["quota L-0 could not be read", "quotas could not be listed"] == caplog.messages
    assert all(record.exc_info for record in caplog.records)


def test_a_slow_listing_is_cut_off_and_what_it_has_not_reached_is_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, large = Clock(seconds_a_look=20.0), "ml.p4d.24xlarge"
    listed = {XLARGE: 4.0, SPOT: 3.0, f"{large} for training job usage": 2.0}
    asked = (("ml.g5.xlarge", False), ("ml.g5.xlarge", True), (large, False))
    quotas = ServiceQuotas(Account(listed=listed), dict, seconds=clock)

    assert [4, 3, None] == [quotas.training_instances(kind, spot=spot) for kind, spot in asked]
    assert "cut off" in caplog.text


def test_a_client_is_made_once_and_not_before_its_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def make(service: str, **_: Any) -> Any:
        made.append(service)
        return Account(applied={"L-1": (XLARGE, 8.0)})

    monkeypatch.setattr(boto3, "client", make)
    stores.client.cache_clear()
    quotas = ServiceQuotas(
        stores.client("service-quotas"), lambda: {("ml.g5.xlarge", False): "L-1"}
    )
    before = list(made)

    assert [8, 8] == [quotas.training_instances("ml.g5.xlarge", spot=False) for _ in range(2)]
    assert ([], ["service-quotas"]) == (before, made)
    stores.client.cache_clear()


def test_every_code_on_file_is_one_quotas_alone() -> None:
    codes = quota_codes()

    assert len(codes) == len(set(codes.values()))
    assert all(code[:2] == "L-" and len(code) == 10 for code in codes.values())
    assert ("ml.g5.48xlarge", False) in codes


def test_the_figures_that_these_tests_go_by() -> None:
    assert (20, 60, 100) == (MOST_SECONDS, LISTING_SECONDS, PAGE_SIZE)
    assert (8, 300, timedelta(30)) == (sagemaker.AT_ONCE, sagemaker.LOOKED_AT, sagemaker.IDLE)


def test_a_warm_function_sees_a_quota_that_has_changed() -> None:
    account, clock = Account(applied={"L-1": (XLARGE, 1.0)}, listed={SPOT: 1.0}), Clock()
    quotas = ServiceQuotas(account, lambda: {("ml.g5.xlarge", False): "L-1"}, seconds=clock)

    def read() -> list[int | None]:
        return [quotas.training_instances("ml.g5.xlarge", spot=spot) for spot in (False, True)]

    before = read()
    account.applied["L-1"], account.listed[SPOT] = (XLARGE, 8.0), 8.0
    clock.now += LISTING_SECONDS
    at_the_minute = read()
    clock.now += 1
    assert ([1, 1], [8, 1], [8, 8]) == (before, at_the_minute, read())

    for account.failure, expected in ((refusal("Down"), [None, None]), (None, [8, 8])):
        clock.now += LISTING_SECONDS + 1
        assert expected == read()
