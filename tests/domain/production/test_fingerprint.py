"""A decision holds for what was proven; what changed is named, what is unknown is no change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.production.fingerprint import (
    FIELDS,
    RECORDED,
    planned,
    recorded,
    stale_reasons,
    unknown_fields,
)
from tests.domain.workload_builder import SOUND

ARM = {
    "image": "registry/pytorch:2.1.0", "instance_type": "ml.g5.48xlarge", "instance_count": 8,
    "precision": "fp16", "distribution": "torch_distributed", "batch_size": 32,
    "learning_rate": 5e-5, "framework": {}, "hyperparameters": {},
}  # fmt: skip
CODE = "workloads/bert-docs/source/abc/sourcedir.tar.gz"


def asked(arm: dict[str, Any] | None = None, code: str = CODE, **changes: Any) -> Any:
    framework = replace(SOUND.framework, **changes.pop("framework", {}))
    training = replace(SOUND.training, **changes.pop("training", {}))
    return planned({**ARM, **(arm or {})}, training, framework, code)


def told(**changed: Any) -> dict[str, Any]:
    fingerprint = {
        "image": "registry/pytorch:2.1.0", "torch": "2.1.0+cu121", "precision": "fp16",
        "code_sha256": "a" * 64, "data_schema_sha256": "b" * 64, "driver": "535", "gpu": "A10G",
        "data_sha256": "c" * 64,
    }  # fmt: skip
    return {"fingerprint": {**fingerprint, **changed}}


@pytest.mark.parametrize(
    ("now", "code", "was", "now_is"),
    [
        (asked({"image": "registry/pytorch:2.2.0"}), "image", "2.1.0", "2.2.0"),
        (asked(framework={"version": "2.2.0"}), "framework", "2.13.0", "2.2.0"),
        (asked({"instance_type": "ml.p4d.24xlarge"}), "instance_type", "g5.48", "p4d.24"),
        (asked({"instance_count": 4}), "instance_count", "was 8", "is 4"),
        (asked({"precision": "bf16"}), "precision", "fp16", "bf16"),
        (asked({"distribution": "smddp"}), "distribution", "torch_distributed", "smddp"),
        (asked({"batch_size": 64}), "batch_size", "was 32", "is 64"),
        (asked({"learning_rate": 1e-4}), "learning_rate", "5e-05", "0.0001"),
        (asked(training={"hyperparameters": {"epochs": 4}}), "hyperparameters", "epochs", "=4"),
        (asked(code=CODE.replace("abc", "def")), "code", "abc", "def"),
    ],
)
def test_a_changed_field_is_named_with_what_it_was_and_is(
    now: Any, code: str, was: str, now_is: str
) -> None:
    (reason,) = stale_reasons(asked(), now)

    assert f"{code}_changed" == reason.code
    before, after = reason.message.split(", is ")
    assert was in before
    assert now_is in f"is {after}"


@pytest.mark.parametrize("key", sorted(RECORDED))
def test_what_a_job_recorded_is_compared_with_what_the_trials_jobs_recorded(key: str) -> None:
    (reason,) = stale_reasons(recorded([told()]), recorded([told(**{key: "d" * 64})]))

    assert f"{RECORDED[key]}_changed" == reason.code
    assert "d" * 12 in reason.message
    assert "d" * 13 not in reason.message


@pytest.mark.parametrize("key", ["driver", "gpu", "data_sha256"])
def test_what_moves_from_night_to_night_is_the_probations_to_watch(key: str) -> None:
    assert () == stale_reasons(recorded([told()]), recorded([told(**{key: "another"})]))


def test_the_same_is_not_stale() -> None:
    assert () == stale_reasons(asked(), asked())
    assert () == unknown_fields(asked(), asked(), tuple(asked()))


def test_unknown_on_either_side_is_no_change_and_is_told() -> None:
    known, unknown = recorded([told()]), recorded([told(code_sha256=None)])

    for pair in ((known, unknown), (unknown, known)):
        assert () == stale_reasons(*pair)
        assert (FIELDS["code_sha256"],) == unknown_fields(*pair, tuple(RECORDED.values()))


def test_a_run_that_recorded_nothing_is_no_change() -> None:
    assert {} == recorded([{"fingerprint": None}, {}])
    assert () == stale_reasons(recorded([told()]), recorded([{}]))


def test_the_latest_run_that_told_counts() -> None:
    found = recorded([told(torch="2.0"), told(torch="2.1"), told(torch=None)])

    assert "2.1" == found["torch"]


def test_a_candidates_own_framework_shows_in_its_image_alone() -> None:
    own = {"framework": {"name": "pytorch", "version": "1.13.1"}, "image": "registry/pytorch:1.13"}

    assert ["image_changed"] == [reason.code for reason in stale_reasons(asked(), asked(own))]
