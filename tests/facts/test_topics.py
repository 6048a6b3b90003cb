"""Rows as people look them up: sourced, dated, filtered, and complete."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.planning.arms import ArmPlan
from compilegate.domain.request.build import launch
from compilegate.domain.workload.model import Framework
from compilegate.facts import load_facts
from compilegate_facts import topics
from compilegate_facts.topics import TOPICS, Row, age_days, chosen, overview, with_age
from tests.usecases.equivalence_table import TABLE

MANAGED_COMPILER = "sagemaker_training_compiler"
REGION = "us-east-1"
TODAY = date(2026, 11, 21)
DATE = re.compile(r"20\d\d-\d\d-\d\d")


def arm(distribution: str, compiler: str) -> ArmPlan:
    return ArmPlan(
        name="a", compiler=compiler, image="i", instance_type="ml.p4d.24xlarge", instance_count=2,
        devices=16, usd_per_hour=1.0, precision="fp16", batch_size=8, learning_rate=1e-4,
        distribution=distribution, overrides={},
    )  # fmt: skip


def rows(topic: str) -> list[Row]:
    return TOPICS[topic].rows(load_facts(), REGION)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_row_has_a_source_and_a_date_or_says_that_it_has_none(topic):
    topic_rows = rows(topic)

    assert topic_rows or (topic == "equivalence" and not load_facts().faults.classes)
    assert [] == [row for row in topic_rows if not row["source"]]
    assert [] == [row for row in topic_rows if row["as_of"] and not DATE.fullmatch(row["as_of"])]
    assert topic == "prices" or [] == [row for row in topic_rows if row["as_of"] is None]


def test_a_class_of_the_equivalence_check_has_what_it_may_miss(
    monkeypatch,
):
    monkeypatch.setattr(topics, "read", lambda _: TABLE)
    row, _ = rows("equivalence")

    assert (62, 1, "2026-11-20", "here") == tuple(
        row[key] for key in ("faults", "missed", "as_of", "source")
    )
    assert row["rho"] == pytest.approx(beta.ppf(0.95, 2, 61))  # Clopper and Pearson's


def test_no_tested_model_is_lost_or_merged():
    topic_rows = rows("models")
    by_framework = Counter(f"{row['framework']} {row['version']}" for row in topic_rows)

    assert {
        "pytorch 1.13.1": 37, "pytorch 1.12.0": 17, "tensorflow 2.11.0": 39,
        "tensorflow 2.10.0": 62, "huggingface-pytorch 1.9.0": 24,
        "huggingface-tensorflow 2.6.3": 35, "huggingface-tensorflow 2.5.1": 21,
    } == by_framework  # fmt: skip
    assert len(topic_rows) == len({tuple(map(str, row.values())) for row in topic_rows})


def test_types_that_the_managed_compiler_accepts_are_marked():
    accepted = {row["family"] for row in rows("instances") if row["managed_compiler"]}

    assert {"g4dn", "g5", "p3", "p3dn", "p4d"} == accepted


def test_launchers_send_no_key_that_is_not_on_file():
    on_file = {row["key"] for row in rows("request-keys")}
    sent: set[str] = set()
    for distribution, compiler, name, version in (
        ("torch_distributed", "none", "pytorch", "2.8.0"),
        ("pytorchddp", "none", "pytorch", "2.1.0"),
        ("pytorchddp", "none", "huggingface-pytorch", "2.1.0"),
        ("smddp", "none", "pytorch", "2.1.0"),
        ("smp", "none", "pytorch", "1.13.1"),
        ("smp", "none", "pytorch", "2.1.0"),
        ("pytorchxla", MANAGED_COMPILER, "pytorch", "1.13.1"),
        ("none", MANAGED_COMPILER, "huggingface-pytorch", "1.10.2"),
    ):
        start = launch(arm(distribution, compiler), Framework(name, version), "train.py")
        sent |= {*start.hyperparameters, *start.environment}

    assert set() == sent - on_file
    assert "sagemaker_pytorch_xla_multi_worker_enabled" in sent


def test_age_is_in_days_and_unknown_without_a_date():
    assert 1255 == age_days("2023-06-15", TODAY)
    assert age_days(None, TODAY) is None


def test_an_overview_is_as_old_as_its_oldest_dated_row():
    topic_rows = overview("prices", with_age(rows("prices"), TODAY), TODAY)

    assert ("2026-09-01", 81) == (topic_rows["as_of"]["oldest"], topic_rows["age_days"])
    assert topic_rows["undated"] == sum(row["as_of"] is None for row in rows("prices"))


@pytest.mark.parametrize(
    ("topic", "filters", "expected"),
    [
        ("images", {"framework": "xgboost"}, 3),
        ("images", {"framework": "pytorch", "version": "1.13"}, 2),
        ("compiler", {"version": "2.9.2"}, 1),
        ("instances", {"instance": "ml.p3"}, 3),
        ("instances", {"instance": "ml.p3.2xlarge"}, 1),
        ("models", {"model": "GPT2-large"}, 1),
        ("models", {"framework": "pytorch", "model": "gpt2", "instance": "g5"}, 5),
        ("prices", {"confidence": "low", "instance": "p3"}, 3),
        ("images", {"framework": "pytorch", "version": "2.8", "compiler": MANAGED_COMPILER}, 0),
    ],
)
def test_rows_that_fit_every_filter(topic, filters, expected):
    assert expected == len(chosen(rows(topic), filters))


@pytest.mark.parametrize(
    ("topic", "filters", "hint"),
    [
        ("images", {"framework": "pytorh"}, "did you mean pytorch"),
        ("instances", {"instance": "ml.g5.3xlarge"}, "did you mean ml.g5.xlarge"),
        ("compiler", {"version": "9"}, "there are 1.10.2"),
        ("models", {"model": "zzz"}, "more"),
    ],
)
def test_a_value_that_is_not_on_file_gets_the_likely_ones(topic, filters, hint):
    with pytest.raises(InvalidInputError, match="is not on file") as caught:
        chosen(rows(topic), filters)

    assert hint in str(caught.value)
    assert f"--{next(iter(filters))}" in str(caught.value)


FILTERS: dict[str, Any] = {
    "images": ["framework", "version", "compiler"],
    "models": ["framework", "version", "model", "instance"],
    "prices": ["instance", "confidence"],
}


@given(data=st.data(), topic=st.sampled_from(sorted(FILTERS)))
def test_a_filter_only_ever_takes_rows_away_or_says_why_not(data, topic):
    words = st.none() | st.text(max_size=12) | st.sampled_from(["pytorch", "2.1", "g5", "low"])
    filters = {name: data.draw(words) for name in FILTERS[topic]}
    every = rows(topic)

    try:
        topic_rows = chosen(every, filters)
    except InvalidInputError as error:
        assert "is not on file" in str(error)
    else:
        assert all(row in every for row in topic_rows)
