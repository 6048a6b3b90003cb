"""The JSON Schema of the workload file follows from its reader, and agrees with it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.expected import Key, Section
from compilegate.domain.workload.file import parse_workload
from compilegate.domain.workload.model import Workload
from compilegate_init.schema import workload_schema
from tests.domain.workload_strategies import FULL, faulty, sound
from tests.fuzzing import at_most, places
from tools.docs.generated import SCHEMA, schema_text

SCHEMA_DOCUMENT = workload_schema()
much = at_most(300)


@pytest.fixture(scope="module")
def accepts() -> Any:
    jsonschema = pytest.importorskip("jsonschema")  # of requirements/dev.lock
    jsonschema.Draft202012Validator.check_schema(SCHEMA_DOCUMENT)
    return jsonschema.Draft202012Validator(SCHEMA_DOCUMENT).is_valid


def is_read(document: Any) -> bool:
    """Whether a document is read; any other error than one that names field and fix is raised."""
    try:
        parse_workload(copy.deepcopy(document))
    except InvalidInputError as error:
        assert all(one.field and one.fix for one in error.each)
        return False
    return True


def test_the_stored_schema_is_todays():
    assert schema_text() == SCHEMA.read_text(), "write it anew: python -m tools.docs"


def test_every_key_has_a_meaning():
    keys = list(keys_within(Workload))

    assert {"alpha", "batch_size", "uri", "instance_groups"} <= {name for name, _ in keys}
    assert [] == [name for name, key in keys if not key.about]


def keys_within(section: type[Section]) -> Iterator[tuple[str, Key]]:
    for name, key in section.keys().items():
        yield name, key
        if key.inner:
            yield from keys_within(key.inner)


@given(document=sound())
@much
def test_a_file_that_is_read_has_no_error_in_an_editor(accepts, document):
    if is_read(document):
        assert accepts(document)


@given(document=faulty())
@much
def test_a_file_that_an_editor_refuses_is_not_read(accepts, document):
    if is_read(document):
        assert accepts(document)


NOT_FREE = ("hyperparameters", "environment", "inputs", "tags", "prices")


@pytest.mark.parametrize(
    "place",
    [p for p in places(FULL) if not set(p) & set(NOT_FREE)],
    ids=lambda p: ".".join(map(str, p)),
)
def test_one_wrong_value_is_refused_by_both(accepts, place):
    document = copy.deepcopy(FULL)
    target: Any = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = {"a": {"b": 1}}

    assert not is_read(document)
    assert not accepts(document)


def test_no_other_version_of_the_format_is_accepted(accepts):
    for version in (0, 2, 1000, True, "1", None):
        document = {**copy.deepcopy(FULL), "schema": version}
        assert (False, False) == (is_read(document), accepts(document)), version
    assert SCHEMA_DOCUMENT["properties"]["schema"]["const"] == 1
