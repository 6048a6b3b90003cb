"""Whose a workload's name is, and who may take it over."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from compilegate.domain.errors import InvalidInputError
from tests.usecases.registration_builder import Production, asked, scheduled


def test_another_owners_name_is_refused_and_nothing_touched() -> None:
    production = Production()
    production.register()
    before = dict(production.store.objects)

    with pytest.raises(InvalidInputError) as told:
        production.register(asked(scheduled(owner="vision"), origin="jobs/bert.yaml"))

    message = str(told.value)
    assert "registered by the owner nlp from workloads/bert-docs.yaml" in message
    assert "--take-over" in message
    assert before == production.store.objects


def test_a_new_name_that_another_owner_was_faster_to_register_is_refused() -> None:
    """Both saw that nobody had it; while this one uploads the other claims it."""
    production, other = Production(), asked(scheduled(owner="vision"), origin="jobs/bert.yaml")

    def meanwhile(_spec: Mapping[str, Any]) -> None:
        production.register(asked())

    with pytest.raises(InvalidInputError, match="registered by the owner nlp"):
        production.register(dataclasses.replace(other, verify=meanwhile))

    assert "nlp" == production.registered().owner


@pytest.mark.parametrize("owner", ["vision", None])
def test_taking_a_name_over_says_what_it_replaces(owner: str | None) -> None:
    production = Production()
    production.register()

    found = production.register(
        asked(scheduled(owner=owner), origin="jobs/bert.yaml"), take_over=True
    )

    assert "workloads/bert-docs.yaml of nlp" == found.replaces
    assert owner == production.registered().owner


def test_another_file_of_the_same_owner_says_what_it_replaces() -> None:
    production = Production()
    production.register()

    assert "workloads/bert-docs.yaml of nlp" == production.register(asked(origin="b.yaml")).replaces


def test_a_workload_without_an_owner_can_get_one() -> None:
    production = Production()
    production.register(asked(scheduled(owner=None)))

    production.register()

    assert "nlp" == production.registered().owner
