"""The flag reads back as it was written, and anything odd is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import (
    MAX_BYTES,
    OFF,
    STATES,
    CompileBundle,
    Flag,
    parse_flag,
)


@pytest.mark.parametrize(
    "text",
    [
        "", "on", "{}", "[]", '{"schema": 1, "enabled": 1}', "[" * 4000,
        '{"schema": 2, "enabled": false, "state": "off"}',
    ],
)  # fmt: skip
def test_a_malformed_flag_is_refused(text):
    with pytest.raises(InvalidInputError):
        parse_flag(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": 1, "enabled": false, "enabled": true, "state": "probation"}',
        '{"schema": 1, "enabled": true, "state": "probation", '
        '"overrides": {"batch_size": 48, "batch_size": 96}}',
        '{"schema": 1, "enabled": true, "state": "probation", '
        '"overrides": {"hyperparameters": {"epochs": 3, "epochs": 4}}}',
    ],
    ids=["of the flag", "of an override", "of a hyperparameter"],
)
def test_of_a_key_written_twice_neither_value_counts(text):
    with pytest.raises(InvalidInputError) as refused:
        parse_flag(text)

    assert "flag" == refused.value.field


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("enabled", [True, False])
def test_what_was_turned_off_is_never_on(enabled, state):
    text = json.dumps({"schema": 1, "enabled": enabled, "state": state})
    if enabled and state in ("off", "reverted"):
        with pytest.raises(InvalidInputError) as refused:
            parse_flag(text)
        assert "flag.state" == refused.value.field
    else:
        assert Flag(enabled, state) == parse_flag(text)


def test_a_flag_above_the_parameters_size_is_refused():
    def written(more: int) -> str:
        return Flag(enabled=True, state="probation", overrides={"image": "é" * more}).to_json()

    fits = (4096 - len(written(0))) // len(json.dumps("é")[1:-1])
    assert 4090 < len(written(fits)) <= 4096
    with pytest.raises(InvalidInputError, match="4096 bytes"):
        written(fits + 1)


BUNDLE = CompileBundle("compile-cache/bert-docs/bundles/" + "a" * 64 + ".json", "a" * 64)


def test_a_bundle_reads_back_as_itself_and_is_left_out_where_there_is_none():
    flag = Flag(True, "probation", "compile", compile_bundle=BUNDLE)

    assert flag == parse_flag(flag.to_json())
    assert "compile_bundle" not in json.loads(OFF.to_json())


@pytest.mark.parametrize(
    "bundle",
    [
        {"sha256": "a" * 64},
        {"place": "p", "sha256": "../secret"},
        {"place": "p", "sha256": "A" * 64},
    ],
)
def test_a_bundle_without_place_or_digest_makes_a_flag_malformed(bundle):
    document = {"schema": 1, "enabled": False, "state": "off", "compile_bundle": bundle}
    with pytest.raises(InvalidInputError):
        parse_flag(json.dumps(document))


def test_a_flag_that_has_no_room_for_a_bundle_goes_without():
    room = MAX_BYTES - len(Flag(True, "probation", "compile").to_json()) - 100
    full = Flag(True, "probation", "compile", {"image": "i" * room})

    assert full == parse_flag(replace(full, compile_bundle=BUNDLE).to_json())
