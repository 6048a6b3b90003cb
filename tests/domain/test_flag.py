"""The flag reads back as it was written, and anything odd is refused."""

from __future__ import annotations

import pytest

from compilegate.domain.errors import InvalidInputError
from compilegate.domain.flag import OFF, Flag, parse_flag


def test_a_flag_reads_back_as_itself() -> None:
    flag = Flag(
        enabled=True, state="probation", candidate="compile", overrides={"batch_size": 48},
        decision_id="d", since="2026-11-20T10:00:00Z",
    )  # fmt: skip

    assert flag == parse_flag(flag.to_json())


def test_absent_is_off() -> None:
    assert OFF == parse_flag(None)


@pytest.mark.parametrize(
    "text",
    ["", "on", "{}", "[]", '{"schema": 2}', '{"schema": 1, "enabled": 1}', "[" * 4000],
)
def test_a_malformed_flag_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_flag(text)


def test_a_flag_above_the_parameters_size_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="4096 bytes"):
        Flag(enabled=True, state="probation", overrides={"x": "y" * 5000}).to_json()
