"""The words in which a flag's hyperparameters reach the script, and the library for partitions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flags.forms import FORMS, warned
from tests.flags.ssm import FakeSsm, promoted


@pytest.mark.parametrize("kind", FORMS)
def test_a_flag_s_text_that_a_shell_would_change_is_left_to_the_baseline(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = FORMS[kind].asked(promoted(hyperparameters={"prompt": "it's"}))

    assert "baseline" == FORMS[kind].variables(job)["COMPILEGATE_ARM"]
    assert "prompt" not in FORMS[kind].hyperparameters(job)
    assert "a shell in the training container would change" in warned(caplog)


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("value", ["[1]", "2", "{", 2, "[" * 100_000])
def test_partitioning_that_is_no_object_is_left_to_the_baseline(
    value: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = FORMS[kind].asked(promoted_text(mp_parameters=value))

    assert "baseline" == FORMS[kind].variables(job)["COMPILEGATE_ARM"]
    assert "mp_parameters of the flag is not a JSON object in quotes" in warned(caplog)


def promoted_text(**values: Any) -> FakeSsm:
    """As ``promoted``, of a flag of any length."""
    flag = {
        "schema": 1, "enabled": True, "state": "permanent", "candidate": "compile",
        "overrides": {"hyperparameters": values},
    }  # fmt: skip
    return FakeSsm(json.dumps(flag))


@pytest.mark.parametrize("kind", FORMS)
def test_partitioning_reaches_the_library_as_an_object(kind: str) -> None:
    job = FORMS[kind].asked(promoted(hyperparameters={"mp_parameters": '{"partitions": 2}'}))

    assert {"partitions": 2} == FORMS[kind].hyperparameters(job)["mp_parameters"]
