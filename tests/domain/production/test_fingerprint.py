"""A decision holds for what was proven; what changed is named, what is unknown is no change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compilegate.domain.production.fingerprint import (
    FIELDS,
    RECORDED,
    compare_with_proven,
    planned,
    recorded,
    stale_reasons,
)
from compilegate.domain.production.registration import TrainedJob
from tests.domain.production.run_builder import production_run
from tests.domain.trial.plans import arm as arm_plan
from tests.domain.workload_builder import SOUND

ARM = {
    "image": "registry/pytorch:2.1.0", "instance_type": "ml.g5.48xlarge", "instance_count": 8,
    "precision": "fp16", "distribution": "torch_distributed", "batch_size": 32,
    "learning_rate": 5e-5,
}  # fmt: skip
CODE = "workloads/bert-docs/source/abc/sourcedir.tar.gz"


def requested(arm: dict[str, Any] | None = None, code: str = CODE, **changes: Any) -> Any:
    framework = replace(SOUND.framework, **changes.pop("framework", {}))
    training = replace(SOUND.training, **changes.pop("training", {}))
    quality = replace(SOUND.quality, **changes.pop("quality", {}))
    workload = replace(SOUND, framework=framework, training=training, quality=quality)
    return planned(arm_plan("compile", **{**ARM, **(arm or {})}), TrainedJob(workload, code))


def job(**changed: Any) -> dict[str, Any]:
    fingerprint = {
        "image": "registry/pytorch:2.1.0", "torch": "2.1.0+cu121", "precision": "fp16",
        "code_sha256": "a" * 64, "data_schema_sha256": "b" * 64, "driver": "535", "gpu": "A10G",
        "data_sha256": "c" * 64,
    }  # fmt: skip
    return {"fingerprint": {**fingerprint, **changed}}


@pytest.mark.parametrize(
    ("now", "code", "was", "now_is"),
    [
        (requested({"image": "registry/pytorch:2.2.0"}), "image", "2.1.0", "2.2.0"),
        (requested(framework={"version": "2.2.0"}), "framework", "2.13.0", "2.2.0"),
        (requested(framework={"transformers": "4.1"}), "framework", "2.13.0", "4.1"),
        (requested(framework={"python": "py9"}), "framework", "2.13.0", "py9"),
        (requested({"instance_type": "ml.p4d.24xlarge"}), "instance_type", "g5.48", "p4d.24"),
        (requested({"instance_count": 4}), "instance_count", "was 8", "is 4"),
        (requested({"precision": "bf16"}), "precision", "fp16", "bf16"),
        (requested({"distribution": "smddp"}), "distribution", "torch_distributed", "smddp"),
        (requested({"batch_size": 64}), "batch_size", "was 32", "is 64"),
        (requested({"learning_rate": 1e-4}), "learning_rate", "5e-05", "0.0001"),
        (requested(training={"hyperparameters": {"epochs": 4}}), "hyperparameters", "epochs", "=4"),
        (requested(code=CODE.replace("abc", "def")), "code", "abc", "def"),
        (requested(quality={"metric": "f1"}), "metric", "accuracy", "f1"),
    ],
)
def test_a_changed_field_is_named_with_what_it_was_and_is(now, code, was, now_is):
    (reason,) = stale_reasons(requested(), now)

    assert f"{code}_changed" == reason.code
    before, after = reason.message.split(", is ")
    assert was in before
    assert now_is in f"is {after}"


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}, "was b=2, c=not set, is b=3, c=4"),
        ({"a": 1}, "x", "was {'a': 1}, is x"),
        ("x" * 80, "y" + "x" * 80, f"was {'x' * 80}, is …{'x' * 80}"),
        ("g" * 64, "a" * 63, f"was {'g' * 64}, is {'a' * 63}"),
    ],
)  # fmt: skip
def test_values_are_shown_as_far_as_a_person_reads_them(was, now, text):
    (reason,) = stale_reasons({"hyperparameters": was}, {"hyperparameters": now})
    assert f"hyperparameters: {text}" == reason.message


@pytest.mark.parametrize("key", sorted(RECORDED))
def test_what_a_job_recorded_is_compared_with_what_the_trials_jobs_recorded(key):
    (reason,) = stale_reasons(recorded([job()]), recorded([job(**{key: "d" * 64})]))

    assert f"{RECORDED[key]}_changed" == reason.code
    assert "d" * 12 in reason.message
    assert "d" * 13 not in reason.message


def test_unknown_on_either_side_is_not_a_change():
    whole, partial = recorded([job()]), recorded([job(code_sha256=None)])

    for pair in ((whole, partial), (partial, whole)):
        assert () == stale_reasons(*pair)


def test_what_one_side_lacks_was_not_compared():
    asked, made = requested(), recorded([job()])
    today = replace(production_run(1), result=job(code_sha256=None))
    registered = {**asked, "precision": None, "code": "other"}
    compared = compare_with_proven(asked, registered, measured={"compile": made},
                                   runs=[today, replace(today, arm="other")])  # fmt: skip

    assert ("precision", FIELDS["code_sha256"]) == compared.unknown
    assert frozenset({"asked code"}) == compared.differs
    assert {"asked image", "compile torch"} <= compared.same
    assert not compared.same & {"asked precision", "asked code", "compile code_sha256"}
