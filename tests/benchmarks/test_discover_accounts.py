"""Generated accounts are what Search returns, repeatable, and decidable from what they show."""

from __future__ import annotations

import random
import re
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
    HAND,
    PIPELINES,
    STYLES,
    V2,
    V3,
    Workload,
    draw_workloads,
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


def test_jobs_to_leave_out_say_whose_they_are(account: Account) -> None:
    aside = [record for record, truth in account if truth is None]

    assert 0.02 * JOBS < len(aside) < 0.13 * JOBS
    for record, truth in account:
        ours = record["TrainingJobName"].startswith("cg-")
        assert (truth is None) == (ours or "TuningJobArn" in record)


def test_the_same_arguments_give_the_same_jobs() -> None:
    first, again = (list(islice(generate(5, V2, 20, 400), 50)) for _ in range(2))

    assert first == again
    assert first != list(islice(generate(6, V2, 20, 400), 50))


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="style: 'v4' is unknown; use one of sdk-v2"):
        next(generate(1, "v4", 2, 10))


def shown(one: Workload) -> set[tuple[str | None, ...]]:
    """What its jobs show of a workload, before and after it was renamed."""
    longest = {V2: 63 - 24, V3: 63 - 9, HAND: 63 - 37}.get(one.style, 63)
    program = None if one.style == V3 else one.program
    bases = (one.base, *([one.renamed[0]] if one.renamed else []))
    return {
        (
            one.style, one.owner, one.repository, program,
            (one.stem if base == one.base else base) if one.style == PIPELINES else None,
            one.step[:20] if one.style == PIPELINES else base[:longest],
        )
        for base in bases
    }  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_two_workloads_never_show_the_same(style: str) -> None:
    owners: dict[tuple[str | None, ...], str] = {}
    for one in draw_workloads(random.Random(9), style, 400):
        for what in shown(one):
            assert owners.setdefault(what, whole(one.truth)) == whole(one.truth), what


@pytest.mark.parametrize("style", STYLES)
def test_where_no_program_is_named_image_owner_or_data_are_not_those_of_another(style: str) -> None:
    owners: dict[tuple[str | None, ...], str] = {}
    for one in draw_workloads(random.Random(9), style, 400):
        if one.style == V3 or one.program is None:
            what = (one.style, one.owner, one.repository, one.stem)
            assert owners.setdefault(what, whole(one.truth)) == whole(one.truth), what


@pytest.mark.parametrize("style", STYLES)
def test_every_kind_of_difficulty_is_there(style: str) -> None:
    drawn = draw_workloads(random.Random(9), style, 90)
    parts = Counter(one.truth.rpartition("/")[2] for one in drawn if "/" in one.truth)
    bases = Counter(one.base for one in drawn)

    assert min(parts[part] for part in ("before", "de", "us", "us-east-1", "eu-west-1")) >= 1
    assert any(one.renamed and one.renamed[1] == one.truth for one in drawn) != (style == V3)
    assert max(bases.values()) >= 2
    assert any(one.swept for one in drawn)
    assert any(one.moving for one in drawn)
    assert any(len(one.base) > 39 for one in drawn)
    assert any(one.program is None for one in drawn)
    assert any(one.every is None for one in drawn)


@pytest.mark.parametrize(
    ("style", "pattern"),
    [
        (V2, r".{1,39}-\d{4}(-\d\d){5}-\d{3}(-retry(-1)?|-attempt2)?"),
        (V3, r".{1,54}-\d{9,14}"),
        (PIPELINES, r"pipelines-[a-z0-9]{12}-.{1,20}-[A-Za-z0-9]{10}"),
    ],
)
def test_names_are_as_the_service_or_its_sdk_makes_them(style: str, pattern: str) -> None:
    for record, truth in generate(2, style, 90, 1500):
        by_hand = "ContainerEntrypoint" not in record["AlgorithmSpecification"] and style == V3
        job_named = "sagemaker_job_name" in record["HyperParameters"] or style != V2
        if truth is not None and job_named and not by_hand:
            assert re.fullmatch(pattern, record["TrainingJobName"]), record["TrainingJobName"]


def test_dollars_are_what_was_billed_of_every_instance() -> None:
    groups = [
        {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2, "InstanceGroupName": "train"},
        {"InstanceType": "ml.m5.xlarge", "InstanceCount": 3, "InstanceGroupName": "read"},
    ]
    usd = {"ml.p4d.24xlarge": 20.0, "ml.m5.xlarge": 0.5}
    record = {"ResourceConfig": {"InstanceGroups": groups}, "BillableTimeInSeconds": 1800}

    assert dollars(record, usd) == 20.75
    assert dollars({"ResourceConfig": groups[1]}, usd) == 0
