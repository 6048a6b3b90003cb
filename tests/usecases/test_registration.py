"""What production trains of a workload, and how it gets there."""

from __future__ import annotations

import json

import pytest

from compilegate.domain.errors import InvalidInputError, NotFoundError
from compilegate.domain.production.registration import Registration
from compilegate.usecases.registration import load_registration
from tests.fakes import MemoryStore

KEY = "workloads/bert-docs/registration.json"
DOCUMENT = {
    "schema": 1,
    "workload": "bert-docs",
    "spec_key": "workloads/bert-docs/specs/0123456789ab.json",
    "source_digest": "ba9876543210",
    "schedule": "cron(0 3 * * ? *)",
    "active": True,
    "owner": "nlp",
    "origin": "workloads/bert-docs.yaml",
    "target": "arn:machine as arn:role",
    "revision": 3,
}


def stored(document: object) -> MemoryStore:
    store = MemoryStore()
    store.put(KEY, json.dumps(document).encode())
    return store


def test_a_registration_is_read_as_it_was_written() -> None:
    found = load_registration(stored(DOCUMENT), "bert-docs")

    assert DOCUMENT == found.to_dict()
    assert Registration.from_dict(DOCUMENT) == found


def test_a_workload_that_never_was_registered_is_said_to_be_so() -> None:
    with pytest.raises(NotFoundError, match=r"bert-docs is not registered.*register"):
        load_registration(MemoryStore(), "bert-docs")


@pytest.mark.parametrize(
    "broken", [[], "text", {}, {**DOCUMENT, "schema": 2}, {**DOCUMENT, "revision": "three"}]
)
def test_a_broken_registration_is_bad_input_that_names_the_object(broken: object) -> None:
    with pytest.raises(InvalidInputError, match=r"s3://data/workloads/bert-docs/registration"):
        load_registration(stored(broken), "bert-docs")


@pytest.mark.parametrize("active", [False, None, "yes", 1])
def test_only_a_plain_true_is_active(active: object) -> None:
    assert not load_registration(stored({**DOCUMENT, "active": active}), "bert-docs").active


def test_unknown_keys_of_a_later_release_are_left_alone() -> None:
    assert load_registration(stored({**DOCUMENT, "colour": "red"}), "bert-docs").active
