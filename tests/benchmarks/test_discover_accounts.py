"""Generated accounts are what Search returns, and repeatable."""

from __future__ import annotations

from itertools import islice
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from benchmarks.discover.accounts import generate
from benchmarks.discover.workloads import (
    STYLES,
    V2,
)
from distributions.localcloud.compilegate_localcloud.emulator.sagemaker.validation import (
    _violations,
)

WORKLOADS, JOBS = 90, 1500
Account = list[tuple[dict[str, Any], str | None]]


@pytest.fixture(scope="module", params=STYLES)
def account(request: pytest.FixtureRequest) -> Account:
    return list(generate(3, request.param, WORKLOADS, JOBS))


@pytest.fixture(scope="module")
def shape() -> Any:
    model = botocore.session.get_session().get_service_model("sagemaker")
    results = model.operation_model("Search").output_shape
    return results.members["Results"].member.members["TrainingJob"]


def test_every_record_is_one_that_search_may_return(account: Account, shape: Any) -> None:
    for record, _ in account:
        report = ParamValidator().validate(record, shape)

        assert not report.has_errors(), report.generate_report()
        assert not list(_violations(shape, record, ""))


def test_the_same_arguments_give_the_same_jobs() -> None:
    first, again = (list(islice(generate(5, V2, 20, 400), 50)) for _ in range(2))

    assert first == again
    assert first != list(islice(generate(6, V2, 20, 400), 50))
