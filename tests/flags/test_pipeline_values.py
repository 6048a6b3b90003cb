"""Single values of a request that was written before anybody knew what the flag would say."""

from __future__ import annotations

from typing import Any

import pytest

from compilegate.domain import naming
from compilegate.domain.argument_text import encoded
from compilegate.flags import pipeline_values
from tests.flags.ssm import FakeSsm, promoted, refusal

TODAY = {
    "compiler": "none", "batch_size": 32, "learning_rate": 5e-5, "instance_type": "ml.g5.xlarge",
    "instance_count": 1,
}  # fmt: skip
BASELINE = {
    "compiler": '"none"', "batch_size": "32", "learning_rate": "5e-05",
    "instance_type": "ml.g5.xlarge", "instance_count": 1, "arm": "baseline",
}  # fmt: skip


def asked(client: Any, **changes: Any) -> dict[str, Any]:
    arguments = {"values": TODAY, **changes}
    return pipeline_values("bert-docs", client=client, **arguments)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"precision": "bf16"}, "the flag sets precision too"),
        ({"compiler": "torch_compile", "hyperparameters": {"warmup": 0.1}}, "the flag sets warmup"),
        ({"image": "own:2"}, "the flag sets image too"),
        ({"distribution": "torch_distributed"}, "how the script starts"),
        ({"entry_point": "other.py"}, "how the script starts"),
        ({"compiler": "sagemaker_training_compiler"}, "image and launcher together"),
        (
            {
                "precision": "bf16",
                "compile_mode": "default",
                "image": "own:2",
                "hyperparameters": {"warmup": 0.1, "depth": 2},
            },
            "the flag sets compile_mode, depth, image, precision, warmup too",
        ),
    ],
)
def test_a_flag_that_sets_more_than_is_passed_on_is_not_followed_by_half(
    overrides: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert BASELINE == asked(promoted(batch_size=48, **overrides))
    assert reason in caplog.text


def test_hyperparameters_are_the_scripts_own_by_name_and_text() -> None:
    client = promoted(batch_size=48, hyperparameters={"note": "a b"})
    values = {"bs": 32, "note": ""}

    launched = asked(client, values=values, names={"batch_size": "bs"}, entry_point="launch.py")
    alone = asked(client, values=values, names={"batch_size": "bs"}, entry_point="train.py")

    assert {"bs": "48", "note": f'"{encoded("a b")}"', "arm": "compile"} == launched
    assert {"bs": "32", "note": '""', "arm": "baseline"} == alone


def test_a_name_that_looks_like_one_of_ours_is_not_followed_unasked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    today = asked(promoted(batch_size=48), values={"bs": 32})

    assert {"bs": "32", "arm": "baseline"} == today
    assert "pass names={'batch_size': 'bs'}" in caplog.text


@pytest.mark.parametrize(
    "answer",
    ['{"schema": 1, "enabled": false, "state": "off"}', "not JSON", refusal("AccessDenied"),
     refusal("ParameterNotFound"), OSError("no way there")],
    ids=str,
)  # fmt: skip
def test_without_a_flag_to_follow_they_are_todays(answer: Any) -> None:
    assert BASELINE == asked(FakeSsm(answer))


@pytest.mark.parametrize(("stage", "place"), [("dev", "dev"), (None, "prod")])
def test_the_flag_is_that_of_the_workload_and_the_stage(stage: str | None, place: str) -> None:
    client = promoted(batch_size=48)
    asked(client, stage=stage, entry_point="train.py")

    assert [naming.flag_parameter(place, "bert-docs")] == client.asked
