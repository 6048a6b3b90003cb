"""Generated accounts are what Search returns, repeatable, and decidable from what they show."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from benchmarks.discover.accounts import generate
from benchmarks.discover.records import dollars
from benchmarks.discover.scoring import whole
from benchmarks.discover.workloads import (
    STYLES,
    V2,
)
from compilegate.facts import load_facts
from distributions.localcloud.compilegate_localcloud.emulator.sagemaker.validation import (
    _violations,
)

WORKLOADS, JOBS = 90, 3000
USD = {name: price.usd_per_hour for name, price in load_facts().prices.items()}
Account = list[tuple[dict[str, Any], str | None]]


@pytest.fixture(scope="module", params=STYLES)
def account(request: pytest.FixtureRequest) -> Account:
    return list(generate(3, request.param, WORKLOADS, JOBS))


def test_every_record_is_one_that_search_may_return(account: Account) -> None:
    model = botocore.session.get_session().get_service_model("sagemaker")
    results = model.operation_model("Search").output_shape
    shape = results.members["Results"].member.members["TrainingJob"]  # type: ignore[union-attr]
    for record, _ in account:
        report = ParamValidator().validate(record, shape)

        assert not report.has_errors(), report.generate_report()
        assert not list(_violations(shape, record, ""))


def test_an_account_has_so_many_jobs_and_workloads_and_what_real_ones_have(
    account: Account,
) -> None:
    records = [record for record, _ in account]
    created = [record["CreationTime"] for record in records]
    truths = Counter(whole(truth) for _, truth in account if truth is not None)
    spent: dict[str, float] = defaultdict(float)
    for record, truth in account:
        spent[whole(truth or "")] += dollars(record, USD)
    tenth = sorted(spent.values())[-WORKLOADS // 10 :]

    assert len(account) == len({record["TrainingJobArn"] for record in records}) == JOBS
    assert created == sorted(created, reverse=True)
    assert len(truths) == WORKLOADS
    assert min(truths.values()) <= 2 < 10 * min(truths.values()) < max(truths.values())
    assert sum(tenth) > 0.4 * sum(spent.values())
    assert {record["TrainingJobStatus"] for record in records} >= {"Completed", "Failed", "Stopped"}
    assert any("TrainingStartTime" not in record for record in records)
    assert any("InstanceGroups" in record["ResourceConfig"] for record in records)
    assert any("WarmPoolStatus" in record for record in records)
    billed = [record for record in records if "BillableTimeInSeconds" in record]
    for record in billed:
        assert record["BillableTimeInSeconds"] <= record["TrainingTimeInSeconds"]
    assert any(
        record["BillableTimeInSeconds"] < record["TrainingTimeInSeconds"]
        for record in billed
        if record["EnableManagedSpotTraining"]
    )


def test_the_same_arguments_give_the_same_jobs() -> None:
    first, again = (list(islice(generate(5, V2, 20, 400), 50)) for _ in range(2))

    assert first == again
    assert first != list(islice(generate(6, V2, 20, 400), 50))
