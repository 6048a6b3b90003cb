"""A training script gets its overrides, or the baseline whatever goes wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from compilegate.domain.flag import Flag
from compilegate.flags import resolve

ON = Flag(True, "probation", "compile", {"compiler": "torch_compile", "batch_size": 48}, "d1", "t")


class FakeSsm:
    """Parameter Store with one answer for every name."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def get_parameter(self, Name: str) -> dict[str, Any]:  # noqa: N803 - boto3's own
        self.asked.append(Name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"Parameter": {"Value": self.answer}}


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, "GetParameter")


def test_an_enabled_flag_gives_its_overrides() -> None:
    client = FakeSsm(ON.to_json())

    overrides = resolve("bert-docs", stage="dev", client=client)

    assert {"compiler": "torch_compile", "batch_size": 48} == overrides
    assert ["/compilegate/dev/workloads/bert-docs/compiler"] == client.asked


def test_the_stage_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILEGATE_STAGE", "beta")
    client = FakeSsm(ON.to_json())

    resolve("bert-docs", client=client)

    assert ["/compilegate/beta/workloads/bert-docs/compiler"] == client.asked


def test_an_absent_flag_is_the_baseline_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    assert {} == resolve("bert-docs", client=FakeSsm(refusal("ParameterNotFound")))
    assert [] == caplog.records


def test_a_disabled_flag_is_the_baseline_even_with_overrides_left_in_it() -> None:
    off = Flag(False, "reverted", "compile", {"compiler": "torch_compile"})

    assert {} == resolve("bert-docs", client=FakeSsm(off.to_json()))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "not json",
        "[]",
        "null",
        '{"schema": 2, "enabled": true, "state": "permanent"}',
        '{"schema": 1, "enabled": "yes", "state": "permanent"}',
        '{"schema": 1, "enabled": true, "state": "on"}',
        '{"schema": 1, "enabled": true, "state": "permanent", "overrides": [1]}',
        refusal("AccessDeniedException"),
        refusal("ThrottlingException"),
        EndpointConnectionError(endpoint_url="https://ssm"),
        TimeoutError("slow"),
        KeyError("Parameter"),
    ],
)
def test_any_failure_is_the_baseline_and_a_logged_warning(
    answer: str | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    assert {} == resolve("bert-docs", client=FakeSsm(answer))

    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert 1 == len(warned)
    assert "training with the baseline" in warned[0].getMessage()


def test_no_client_to_be_had_is_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")

    assert {} == resolve("bert-docs")
